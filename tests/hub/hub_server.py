"""A server that behaves as Hugging Face's hub does: the API, files with ETags and ranges, large files on another host,
gated and missing repositories, limits, cut connections and wrong bytes. Standard library only.

Two servers run: the hub, and the host of the large files, to which the hub redirects with signed addresses. As the hub does
since its files lie in Xet's store, it names each large file's hash there and where a client of Xet gets a token; a client
without Xet gets the file from a bridge at the signed address, which ends after a while. Faults are
set by tests: `faults["cut"] = [3000, 5000]` cuts the next two answers of the large files after so many bytes,
`faults["uses"] = 2` ends each signed address after two requests."""

import hashlib
import http.server
import json
import re
import threading
import time
import urllib.parse

LARGE = 4096  # bytes from which the hub keeps a file as LFS does


def git_sum(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repo:
    def __init__(self, files, gated=False, private=False):
        self.files = files
        self.gated = gated
        self.private = private
        names = json.dumps(sorted((name, git_sum(data)) for name, data in files.items()))
        self.commit = hashlib.sha1(names.encode()).hexdigest()
        self.refs = {"main": self.commit}

    def entry(self, path):
        data = self.files[path]
        out = {"type": "file", "path": path, "size": len(data), "oid": git_sum(data)}
        if len(data) >= LARGE:
            pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sum(path)}\nsize {len(data)}\n"
            out["oid"] = git_sum(pointer.encode())
            out["lfs"] = {"oid": self.sum(path), "size": len(data), "pointerSize": len(pointer)}
            out["xetHash"] = self.xet_hash(path)
        return out

    def sum(self, path):
        return hashlib.sha256(self.files[path]).hexdigest()

    def xet_hash(self, path):
        """Of the form of Xet's, which is of the file's chunks; nobody here reads it."""
        return hashlib.blake2b(self.files[path], digest_size=32).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def json(self, value, headers=None):
        self.answer(200, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def send_file(self, data, headers, cut=None, hold=None):
        """The file, or the range asked for; `cut`: the connection ends after so many bytes; `hold`: called in the middle
        of a megabyte and more, returns when the rest may follow."""
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        status, begin, end = 200, 0, len(data)
        if asked and not self.hub.faults.get("no_ranges"):
            begin = int(asked[1])
            end = min(int(asked[2]) + 1, end) if asked[2] else end
            if begin >= len(data):
                return self.answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            status = 206
            headers = {**headers, "Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"}
        part = data[begin:end]
        if len(part) < 1_000_000:
            hold = None
        if (cut is None and hold is None) or self.command == "HEAD":
            return self.answer(status, part, {**headers, "Accept-Ranges": "bytes", "Content-Length": str(len(part))})
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(part))}.items():
            self.send_header(name, value)
        self.end_headers()
        if hold:
            return self.send_slowly(part, hold)
        self.wfile.write(part[:cut])
        self.wfile.flush()
        self.close_connection = True

    def send_slowly(self, data, hold):
        """In pieces that take longer than the pause between two reports of progress."""
        piece = len(data) // 10 + 1
        for at in range(0, len(data), piece):
            if at == 5 * piece:
                hold()
            self.wfile.write(data[at : at + piece])
            self.wfile.flush()
            time.sleep(0.06)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        with self.hub.lock:
            self.hub.requests.append((self.name, self.command, self.path, dict(self.headers)))
        try:
            self.handle_path(url, urllib.parse.parse_qs(url.query))
        except ConnectionError:  # the client has what it wants, or was killed
            self.close_connection = True


class LargeFiles(Handler):
    """The host with the bytes of large files."""

    name = "files"

    def handle_path(self, url, query):
        data = self.hub.blobs.get(url.path.rpartition("/")[2])
        faults = self.hub.faults
        if self.headers.get("Authorization"):
            return self.answer(400, b"<Error><Code>InvalidArgument</Code><Message>Only one auth mechanism allowed"
                               b"</Message></Error>", {"Content-Type": "application/xml"})
        with self.hub.lock:
            signed = query.get("X-Amz-Signature", [""])[0]
            used = self.hub.uses[signed] = self.hub.uses.get(signed, 0) + 1
            expired = used > faults.get("uses", used) or not signed.startswith(self.hub.signature + "-")
        if data is None or expired:
            return self.answer(403, b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>",
                               {"Content-Type": "application/xml"})
        with self.hub.lock:
            cut = faults["cut"].pop(0) if faults.get("cut") else None
            if faults.get("wrong", 0) > 0:
                faults["wrong"] -= 1
                data = bytes([data[0] ^ 1]) + data[1:]
        if faults.get("slow"):
            threading.Event().wait(faults["slow"])
        self.send_file(data, {"ETag": f'"{hashlib.md5(data).hexdigest()}"', "Cache-Control": "public, max-age=31536000",
                              "Content-Disposition": query["response-content-disposition"][0]}, cut, faults.get("hold"))


class Hub(Handler):
    name = "hub"

    def refused(self, status, code=None, message=None, headers=None):
        named = {"X-Error-Code": code, "X-Error-Message": message}
        body = json.dumps({"error": message or code or "error"}).encode()
        self.answer(status, body, {**{k: v for k, v in named.items() if v}, **(headers or {})})

    def limited(self):
        with self.hub.lock:
            left = self.hub.faults.get("limited", 0)
            self.hub.faults["limited"] = max(0, left - 1)
        if left > 0:
            self.refused(429, None, "Too Many Requests", {"Retry-After": str(self.hub.faults.get("retry_after", 1))})
        return left > 0

    def repo(self, name, files=False):
        """The repository if the client may read it; else answers."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and token not in self.hub.tokens:
            self.refused(401, None, "Invalid credentials in Authorization header")
            return None
        found = self.hub.repos.get(name)
        if found is None or (found.private and not token):
            self.refused(404 if token else 401, "RepoNotFound", "Repository not found")
            return None
        if files and found.gated and token != "accepted":
            self.refused(403 if token else 401, "GatedRepo", f"Access to model {name} is restricted")
            return None
        return found

    def handle_path(self, url, query):
        if self.limited():
            return
        if url.hostname == "files.example":  # from a client that uses this server as its proxy
            return LargeFiles.handle_path(self, url, query)
        path = url.path
        if path == "/api/models":
            return self.search(query)
        if found := re.fullmatch(r"/api/models/([^/]+(?:/[^/]+)?)(/revision/([^/]+))?", path):
            return self.about(found[1], urllib.parse.unquote(found[3] or "main"))
        if found := re.fullmatch(r"/api/models/([^/]+(?:/[^/]+)?)/tree/([^/]+)/?", path):
            return self.tree(found[1], urllib.parse.unquote(found[2]), query)
        if found := re.fullmatch(r"/([^/]+(?:/[^/]+)?)/resolve/([^/]+)/(.+)", path):
            return self.resolve(found[1], urllib.parse.unquote(found[2]), urllib.parse.unquote(found[3]))
        self.refused(404)

    def commit(self, repo, revision):
        commit = repo.refs.get(revision, revision if revision == repo.commit else None)
        if commit is None:
            self.refused(404, "RevisionNotFound", "Invalid rev id: " + revision)
        return commit

    def search(self, query):
        words = query.get("search", [""])[0].lower()
        rows = [{"id": name, "downloads": 10 * len(name), "likes": 1, "pipeline_tag": "text-generation"}
                for name in self.hub.repos if words in name.lower()]
        rows.sort(key=lambda row: -row["downloads"])
        if "search" in self.hub.faults:
            return self.answer(200, self.hub.faults["search"])
        self.json(rows[: int(query.get("limit", ["1000"])[0])])

    def about(self, name, revision):
        repo = self.repo(name)
        if repo and (commit := self.commit(repo, revision)):
            siblings = [{"rfilename": path} for path in sorted(repo.files)]
            self.json({"id": name, "modelId": name, "sha": commit, "siblings": siblings, "private": repo.private,
                       "tags": [], "downloads": 1, "likes": 1})

    def tree(self, name, revision, query):
        """Pages of three files, as the hub's of a thousand."""
        repo = self.repo(name)
        if not repo or not self.commit(repo, revision):
            return
        paths = sorted(repo.files)
        at = int(query.get("cursor", ["0"])[0])
        headers = {}
        if at + 3 < len(paths):
            query = urllib.parse.urlencode({"recursive": "true", "cursor": at + 3})
            headers["Link"] = f'<{self.hub.endpoint}/api/models/{name}/tree/{revision}?{query}>; rel="next"'
        if self.hub.faults.get("circle"):
            headers["Link"] = f'<{self.hub.endpoint}{self.path}>; rel="next"'
        folders = [{"type": "directory", "path": "folder", "oid": "0" * 40, "size": 0}] if at == 0 else []
        self.json(folders + [repo.entry(path) for path in paths[at : at + 3]], headers)

    def resolve(self, name, revision, path):
        repo = self.repo(name, files=True)
        commit = repo and self.commit(repo, revision)
        if not commit:
            return
        if path not in repo.files:
            return self.refused(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        data = repo.files[path]
        same = self.hub.faults.get("etag")
        if len(data) < LARGE:
            return self.send_file(data, {"ETag": f'"{same or git_sum(data)}"', "X-Repo-Commit": commit})
        xet_hash = repo.xet_hash(path)
        self.hub.blobs[xet_hash] = data
        location = self.hub.faults.get("location") or self.signed(xet_hash, path)
        token = f"{self.hub.endpoint}/api/models/{name}/xet-read-token/{commit}"
        rebuilt = f"{self.hub.files_endpoint}/v1/reconstructions/{xet_hash}"
        self.answer(302, f"Found. Redirecting to {location}".encode(), {
            "Location": location, "Content-Type": "text/plain; charset=utf-8", "X-Repo-Commit": commit,
            "X-Linked-Etag": f'"{same or repo.sum(path)}"', "X-Linked-Size": str(len(data)), "ETag": '"of-the-redirect"',
            "X-Xet-Hash": xet_hash, "Accept-Ranges": "bytes",
            "Link": f'<{token}>; rel="xet-auth", <{rebuilt}>; rel="xet-reconstruction-info"'})

    def signed(self, xet_hash, path):
        """An address of the bridge, which is another one for each request."""
        with self.hub.lock:
            self.hub.addresses += 1
            number = self.hub.addresses
        query = urllib.parse.urlencode({
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Expires": "3600", "X-Amz-SignedHeaders": "host",
            "X-Amz-Signature": f"{self.hub.signature}-{number}", "x-id": "GetObject",
            "response-content-disposition": f'inline; filename="{urllib.parse.quote(path.rpartition("/")[2])}";'})
        return f"{self.hub.files_endpoint}/xet-bridge-us/{'0' * 24}/{xet_hash}?{query}"


class TestHub:
    """`with TestHub(repos) as hub:` both servers on free ports of 127.0.0.1."""

    __test__ = False

    def __init__(self, repos):
        self.repos = repos
        self.tokens = {"accepted", "other"}
        self.faults = {}
        self.requests = []
        self.blobs = {}
        self.signature = "s1"
        self.addresses, self.uses = 0, {}  # signed ones, and requests to each
        self.lock = threading.Lock()
        self.servers = [self.server(Hub), self.server(LargeFiles)]
        self.endpoint, self.files_endpoint = (f"http://127.0.0.1:{s.server_address[1]}" for s in self.servers)

    def server(self, handler):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type(handler.__name__, (handler,), {"hub": self}))
        server.daemon_threads = True
        server.block_on_close = False
        return server

    def __enter__(self):
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()
