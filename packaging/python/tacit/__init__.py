"""Tacit from Python: a daemon is asked, an exported model predicts, an exported ledger is read."""

from .client import Client as Client, Scores as Scores
from .frame import Frame as Frame, TacitError as TacitError
from .ledger import Ledger as Ledger
from .model import Model as Model
