"""A browser for the tests: headless Chromium, driven over the W3C WebDriver protocol.

Reads one command a line from standard input and answers each with one line of JSON: `{"ok": …}` or
`{"error": …}`. It starts chromedriver itself, in whatever network namespace it is started in.

    open URL             loads a page
    size WIDTH HEIGHT    the size of the window, in CSS pixels, as a phone has it below 600
    scheme dark|light    what the user prefers
    texts SELECTOR       the visible texts of all elements that match
    script SOURCE        what a function body returns
    tree                 the accessibility tree: a list of [role, name]
    log                  what the page and the browser have complained of since the last look
    shot FILE            a picture of the whole page, as PNG
"""

import base64
import json
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

LIMIT = 60


class Browser:
    def __init__(self, profile):
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.base = f"http://127.0.0.1:{self.port()}"
        arguments = [
            "--headless=new",
            # It runs as root, in a namespace of its own, and loads one page of our own.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            f"--user-data-dir={profile}",
        ]
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{answer['sessionId']}"

    def port(self):
        for line in self.driver.stdout:
            words = line.split()
            if "port" in words and "successfully" in words:
                return words[-1].rstrip(".")
        raise RuntimeError("chromedriver did not start")

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error

    def command(self, method, path, body=None):
        return self.ask(method, self.session + path, body)

    def devtools(self, method, **parameters):
        body = {"cmd": method, "params": parameters}
        return self.command("POST", "/goog/cdp/execute", body)

    def script(self, source, *arguments):
        return self.command("POST", "/execute/sync", {"script": source, "args": list(arguments)})

    def open(self, url):
        self.command("POST", "/url", {"url": url})

    def size(self, width, height):
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=int(width),
            height=int(height),
            deviceScaleFactor=1,
            mobile=int(width) < 600,
        )

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def texts(self, selector):
        found = "return [...document.querySelectorAll(arguments[0])].map(it => it.innerText ?? it.textContent)"
        return self.script(found, selector)

    def tree(self):
        nodes = self.devtools("Accessibility.getFullAXTree")["nodes"]

        def value(node, key):
            return node.get(key, {}).get("value", "")

        return [[value(it, "role"), value(it, "name")] for it in nodes if not it.get("ignored")]

    def log(self):
        return [entry["message"] for entry in self.command("POST", "/se/log", {"type": "browser"})]

    def shot(self, file):
        metrics = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": metrics["width"], "height": metrics["height"], "scale": 1}
        picture = self.devtools("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        with open(file, "wb") as out:
            out.write(base64.b64decode(picture["data"]))

    def close(self):
        try:
            self.ask("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            print(json.dumps({"ok": None}), flush=True)
            for line in sys.stdin:
                name, _, rest = line.rstrip("\n").partition(" ")
                try:
                    words = rest.split() if name in ("size",) else [rest] if rest else []
                    answer = {"ok": getattr(browser, name)(*words)}
                except Exception as error:  # pylint: disable=broad-except
                    answer = {"error": f"{name}: {error}"}
                print(json.dumps(answer), flush=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
