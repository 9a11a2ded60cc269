"""Asks a running tacitd. The variables of `tacit query` name files: TACIT_TOKEN_FILE, TACIT_CA_FILE,
TACIT_CLIENT_CERTIFICATE and TACIT_CLIENT_KEY."""

import contextlib
import http.client
import json
import os
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from .frame import Frame, Rule, TacitError, checked, plain, rows_of

ROWS_MOST = 4096  # of one request


class Scores(list[float]):
    """A probability for each row. `models` has the model of each request of 4,096 rows, with its version
    and epsilon: a daemon may commit between two requests."""
    models: list[dict[str, Any]]


class Client:
    """A daemon at http://HOST:PORT, https://HOST:PORT or unix:/PATH. Each request has its own connection."""

    def __init__(self, url: str, timeout_s: float = 10) -> None:
        self.url, self.timeout_s = url, timeout_s
        self._scheme, _, rest = url.partition(":")
        is_unix = self._scheme == "unix"
        parts = rest.removesuffix(":").partition(":/") if is_unix else rest.removeprefix("//").partition("/")
        self._place, self._prefix = parts[0], f"/{parts[2]}".rstrip("/")
        if self._scheme not in ("http", "https", "unix") or not self._place:
            raise TacitError(f"'{url}' is not an address: http://HOST:PORT, https://HOST:PORT or unix:/PATH")

    def score(self, frame: Frame, learner: str | None = None) -> Scores:
        """The click probabilities of rows. `learner` may be left out where there is one."""
        rows, scores = [{"features": row} for row in rows_of(frame)], Scores()
        scores.models = []
        for begin in range(0, len(rows), ROWS_MOST):
            part = rows[begin : begin + ROWS_MOST]
            rules: dict[str, Rule] = {"model": dict, "scores": lambda found: isinstance(found, list) and [
                type(each) in (int, float) and 0 <= each <= 1 for each in found] == [True] * len(part)}
            answer = self._ask("POST", "/v1/score", rules, learner=learner, rows=part)
            scores.extend(answer["scores"])
            scores.models.append(answer["model"])
        return scores

    def recommend(self, *, sequence: Sequence[str | int] | None = None, user: str | int | None = None,
                  k: int = 10, learner: str | None = None, **more: Any) -> dict[str, Any]:
        """The items that come next; `more` are other fields of POST /v1/recommend."""
        return self._ask("POST", "/v1/recommend", {"items": list}, sequence=sequence, user=user, k=k,
                         learner=learner, **more)

    def privacy(self) -> dict[str, Any]:
        """The spending of each learner and of all together: GET /v1/privacy."""
        return self._ask("GET", "/v1/privacy", {"learners": list})

    def _ask(self, method: str, path: str, rules: Mapping[str, Rule], **asked: Any) -> dict[str, Any]:
        given = {key: plain(value, f"{path}: {key}") for key, value in asked.items() if value is not None}
        fields = {"Connection": "close", "Content-Type": "application/json", **_token_field()}
        try:
            with contextlib.closing(self._connection()) as connection:
                if self._scheme == "unix":
                    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    connection.sock.settimeout(self.timeout_s)
                    connection.sock.connect(self._place)
                with contextlib.suppress(BrokenPipeError):  # it may refuse before it has read all
                    connection.request(method, self._prefix + path, json.dumps(given) if given else None, fields)
                response = connection.getresponse()
                text = response.read(64 << 20)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise TacitError(f"no daemon answers at {self.url}: {error or type(error).__name__}") from None
        try:
            answer = json.loads(text)
            if response.status == 200:
                return checked(answer, rules)
            message = answer["error"]["message"]
        except (LookupError, RecursionError, TypeError, ValueError) as error:
            message = error if response.status == 200 else text[:300]
        refusal = TacitError(f"{self.url} answered {response.status}: {message}")
        refusal.status = response.status
        raise refusal

    def _connection(self) -> http.client.HTTPConnection:
        if self._scheme != "https":
            place = self._place if self._scheme == "http" else "localhost"
            return http.client.HTTPConnection(place, timeout=self.timeout_s)
        context = ssl.create_default_context(cafile=os.environ.get("TACIT_CA_FILE") or None)
        if certificate := os.environ.get("TACIT_CLIENT_CERTIFICATE"):
            context.load_cert_chain(certificate, os.environ.get("TACIT_CLIENT_KEY") or None)
        return http.client.HTTPSConnection(self._place, timeout=self.timeout_s, context=context)


def _token_field() -> dict[str, str]:
    path, token = os.environ.get("TACIT_TOKEN_FILE"), ""
    if not path:
        return {}
    with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
        token = file.readline().rstrip("\r\n ")
    if not token or " " in token:
        raise TacitError(f"$TACIT_TOKEN_FILE: the first line of {path} is no token")
    return {"Authorization": f"Bearer {token}"}
