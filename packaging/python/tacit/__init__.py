"""Tacit from Python: a daemon is asked, an exported model predicts, an exported ledger is read."""

from .client import Client, Scores
from .frame import Frame, TacitError
from .ledger import Ledger
from .model import Model

__all__ = ["Client", "Frame", "Ledger", "Model", "Scores", "TacitError"]
