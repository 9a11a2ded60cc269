# Stands between a browser and a daemon, and changes what the daemon says: a planted fault.
import http.server
import threading


class Proxy:
    def __init__(self, daemon):
        self.daemon = daemon
        self.change_answer = self.change_page = None
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                proxy.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request):
        accept = {"Accept": request.headers.get("Accept", "")}
        status, body, headers = self.daemon.get(request.path, accept)
        kept = {"Content-Type", "Content-Security-Policy"}
        if request.path == "/" and self.change_page:
            body = self.change_page(body.decode()).encode()
            kept.discard("Content-Security-Policy")  # it knows the script by its hash
        if request.path.startswith("/v1/dashboard") and self.change_answer:
            body = self.change_answer(body)
        request.send_response(status or 502)
        for name in kept & set(headers):
            request.send_header(name, headers[name])
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
