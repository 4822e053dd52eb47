"""Stands between the operator and the API server, lets through, and on request misbehaves: as a slow, overloaded, restarted or absent one.

Or as one with another clock: then every time that the operator reads is shifted, and every time that it writes is shifted back.
"""
import datetime
import http.client
import http.server
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse

WRITES = ("POST", "PUT", "PATCH", "DELETE")
TIME = re.compile(rb'(?<=")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d+)?Z)(?=")')


def shifted(text, seconds):
    """JSON with all of its times later by so many seconds."""
    def later(found):
        time = datetime.datetime.fromisoformat(found[1].decode()) + datetime.timedelta(seconds=seconds)
        return time.isoformat().encode() + found[2]
    return TIME.sub(later, text) if seconds else text


def is_watch(path):
    return "watch=" in path


class ApiProxy:
    """Serves plain HTTP at `address`. `server` is the real one's URL, `ca` the text of its certificate authority."""

    def __init__(self, server, ca):
        self._server = urllib.parse.urlsplit(server)
        self._tls = ssl.create_default_context(cadata=ca)
        self._mutex = threading.Lock()
        self._open = set()  # sockets of the operator's connections
        self.away = False
        self.answer = lambda method, path: None  # a status code instead of the real answer
        self.page = lambda method, path: None  # a status code, with a page for people as a load balancer has them, instead of the real answer
        self.swallow = lambda method, path, body: False  # the connection breaks instead, and the real server never sees this
        self.after_write = lambda method, path, body: None  # the real server has taken it; the operator has no answer yet
        self.after_answer = lambda authorization, status: None  # of the real server, to who shows this header
        self.shift = 0  # seconds by which the server's clock is ahead of the operator's
        self.halve = lambda method, path: False  # half of the answer, of a watch half of its first event, then the connection breaks
        self.writes = []  # (method, path, body) that the real server has taken
        proxy = self

        class Handler(_Handler):
            pass

        Handler.proxy = proxy
        self._http = _Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self):
        self._http.shutdown()
        self.break_connections()
        self._http.server_close()

    def break_connections(self):
        with self._mutex:
            sockets = list(self._open)
        for connection in sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def go_away(self):
        self.away = True
        self.break_connections()

    def come_back(self):
        self.away = False

    def opened(self, connection):
        with self._mutex:
            self._open.add(connection)

    def closed(self, connection):
        with self._mutex:
            self._open.discard(connection)

    def ask(self, method, path, body, headers):
        """(the connection, the real server's answer)."""
        connection = http.client.HTTPSConnection(self._server.hostname, self._server.port, timeout=600, context=self._tls)
        connection.request(method, path, body, headers)
        return connection, connection.getresponse()

    def took(self, method, path, body):
        with self._mutex:
            self.writes.append((method, path, body))


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """An operator that was killed, or whose connection the test broke."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy = None

    def setup(self):
        super().setup()
        self.proxy.opened(self.connection)

    def finish(self):
        self.proxy.closed(self.connection)
        try:
            super().finish()
        except OSError:
            pass

    def log_message(self, *arguments):
        pass

    def date_time_string(self, timestamp=None):
        """Of the answers' heads."""
        return super().date_time_string((time.time() if timestamp is None else timestamp) + self.proxy.shift)

    def _pass(self):
        method, proxy = self.command, self.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        if proxy.away or proxy.swallow(method, self.path, body):
            self.close_connection = True
            return
        instead = proxy.answer(method, self.path)
        if instead:
            self._refuse(instead)
            return
        instead = proxy.page(method, self.path)
        if instead:
            self._show_page(instead)
            return
        dropped = ("host", "connection", "content-length", "accept-encoding")  # what is not packed can be shifted
        headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
        try:
            connection, answer = proxy.ask(method, self.path, body and shifted(body, -proxy.shift), headers)
        except (OSError, http.client.HTTPException):
            self.close_connection = True
            return
        proxy.after_answer(self.headers.get("Authorization"), answer.status)
        if method in WRITES and answer.status < 300:
            proxy.took(method, self.path, body)
            proxy.after_write(method, self.path, body)
        try:
            self._forward(answer, halve=proxy.halve(method, self.path))
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            connection.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass

    def _refuse(self, status):
        text = (f'{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the proxy says {status}",'
                f'"reason":"{ {410: "Expired", 409: "Conflict", 429: "TooManyRequests"}.get(status, "InternalError") }","code":{status}}}').encode()
        self._say(status, "application/json", text, {"Retry-After": "1"} if status == 429 else {})

    def _show_page(self, status):
        headers = {"Location": "https://sign-in.example/"} if 300 <= status < 400 else {}
        self._say(status, "text/html", f"<html><h1>{status}</h1>the load balancer</html>".encode(), headers)

    def _say(self, status, content_type, text, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Type": content_type, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def _forward(self, answer, halve):
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        if answer.getheader("Content-Length") is not None or (halve and not is_watch(self.path)):
            text = shifted(answer.read(), self.proxy.shift)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text[:len(text) // 2] if halve else text)
            self.close_connection = self.close_connection or halve
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if halve:
            event = answer.readline()
            self._chunk(event[:len(event) // 2])
            self.close_connection = True
            return
        if self.proxy.shift:
            for line in answer:  # a watch's event is one
                self._chunk(shifted(line, self.proxy.shift))
        else:
            while text := answer.read1(65536):
                self._chunk(text)
        self._chunk(b"")

    def _chunk(self, text):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
