# Headless Chromium, driven over the pipe of its DevTools protocol with Python's own library alone.
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE = 60  # seconds that a test waits for a state at most


def find_chromium():
    return shutil.which("chromium")


class Browser:
    """One Chromium with a profile of its own. Ends with the object."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="tacit-chromium-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def arrange():
            # Chromium reads its file 3 and writes its file 4. Copies first: they may be in the way.
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._log = open(os.path.join(self.profile, "log"), "wb")
        self.process = subprocess.Popen(
            [find_chromium(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-extensions", "--force-color-profile=srgb", "--font-render-hinting=none",
             "--user-data-dir=" + self.profile, "about:blank"],
            preexec_fn=arrange, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=self._log)
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self._next = 0
        self._answers = {}
        self.events = []

    def close(self):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _take(self, timeout):
        """Reads one message, or returns False when none has come."""
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], timeout)[0]:
                return False
            piece = os.read(self._read, 1 << 16)
            if not piece:
                with open(self._log.name, errors="replace") as log:
                    raise RuntimeError("chromium ended: " + log.read()[-2000:])
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(message)
        if "id" in message:
            self._answers[message["id"]] = message
        else:
            self.events.append(message)
        return True

    def call(self, method, session=None, **params):
        self._next += 1
        mine = self._next
        message = {"id": mine, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while mine not in self._answers:
            if time.monotonic() > end:
                raise RuntimeError(method + ": chromium does not answer")
            self._take(1)
        answer = self._answers.pop(mine)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def page(self, url, width=1280, height=900, dark=False):
        return Page(self, url, width, height, dark)


class Page:
    """A tab, which notes all requests, errors and messages of its console from the beginning."""

    def __init__(self, browser, url, width, height, dark):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log", "Accessibility"):
            self.call(domain + ".enable")
        self.resize(width, height)
        self.scheme("dark" if dark else "light")
        self.call("Page.navigate", url=url)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def events(self, method):
        while self.browser._take(0):
            pass
        return [event["params"] for event in self.browser.events
                if event.get("sessionId") == self.session and event["method"] == method]

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": name}])

    def eval(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, what):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                value, thrown = self.eval(expression), ""
            except RuntimeError as error:  # an element that is not there yet
                value, thrown = None, f" ({error})"
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not come{thrown}; the page says:\n" +
                                     self.eval("document.body.innerText")[:4000])
            time.sleep(.05)

    def key(self, key, code=None, number=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      windowsVirtualKeyCode=number, text=text if kind == "keyDown" else "")

    def tab(self):
        self.key("Tab", number=9)

    def space(self):
        self.key(" ", "Space", 32, " ")

    def screenshot(self, path, last=None, scale=1):
        """The whole page, or as far as the element with this id."""
        height = self.eval(f"document.getElementById('{last}').getBoundingClientRect().bottom"
                           if last else "document.documentElement.scrollHeight")
        width = self.eval("innerWidth")
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                          clip={"x": 0, "y": 0, "width": width, "height": height, "scale": scale})
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))

    def close(self):
        self.call("Page.close")
