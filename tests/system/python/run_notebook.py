"""run_notebook.py NOTEBOOK: runs a notebook here, and writes what it has printed into told.txt."""

import pathlib
import sys

import nbclient
import nbformat

notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
pathlib.Path("told.txt").write_text("".join(output.get("text", "") for output in outputs))
