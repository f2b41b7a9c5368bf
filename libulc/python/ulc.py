# SPDX-License-Identifier: BSD-3-Clause
"""Messages and collectives of ULC for Python, over libulc by ctypes.

    import ulc
    with ulc.Endpoint() as ep:              # ULC_ENGINE or the default socket
        ep.join()                           # as `ulc run` or mpirun say
        ep.send({"a": 7}, 1, tag=3)         # any object, pickled
        ep.Send(array, 1, tag=4)            # a buffer, as it is

Names follow mpi4py: capital letters take objects with the buffer protocol (bytes, array, NumPy
arrays) and move their bytes; small letters take any object and pickle it. Receive objects only
from ranks that you trust: unpickling runs code of the sender.

Calls that wait have a limit in seconds; None waits as long as it takes. Ctrl-C ends a wait. An
endpoint belongs to one thread at a time. Failures raise ulc.Error, whose code is an ERR_ number of
ulc.h. The library is libulc.so.0, or the file that ULC_LIBRARY names.
"""
import ctypes
import os
import pickle
import time

ANY = 0xFFFF
TAG_MAX = (1 << 63) - 1
ALL_BITS = (1 << 64) - 1

OK, AGAIN, NO_ENGINE, CLOSED, PEER_LEFT, PEER_DIED = 0, 1, 7, 8, 9, 10
TIMEOUT, TRUNCATED = 14, 17
SUM, PROD, MIN, MAX, LAND, LOR, LXOR, BAND, BOR, BXOR = range(1, 11)

_SLICE_NS = 50_000_000  # a wait looks for Ctrl-C each time

# (format of the buffer protocol, bytes of an element) -> ulc_type
_TYPES = {
    ("b", 1): 1, ("h", 2): 2, ("i", 4): 3, ("l", 4): 3, ("l", 8): 4, ("q", 8): 4,
    ("B", 1): 5, ("H", 2): 6, ("I", 4): 7, ("L", 4): 7, ("L", 8): 8, ("Q", 8): 8,
    ("f", 4): 9, ("d", 8): 10, ("g", 16): 11, ("?", 1): 12, ("Zf", 8): 14, ("Zd", 16): 15,
    ("Zg", 32): 16,
}


class Error(Exception):
    """A call of libulc failed. code: an ERR_ number of ulc.h."""

    def __init__(self, code, during):
        self.code = code
        text = _library().ulc_error_text(code).decode()
        more = _library().ulc_last_error_text().decode()
        super().__init__(f"{during}: {text}" + (f" ({more})" if more else ""))


class Status(ctypes.Structure):
    """Outcome of a receive: source, group (0: unicast), tag, length in bytes of the message."""

    _fields_ = [("error", ctypes.c_int), ("source", ctypes.c_uint16),
                ("reserved", ctypes.c_uint16), ("group", ctypes.c_uint32),
                ("tag", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Reduction(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("op", ctypes.c_uint32),
                ("function", ctypes.c_void_p), ("context", ctypes.c_void_p),
                ("commutative", ctypes.c_int)]


class _RequestMemory(ctypes.Structure):
    _fields_ = [("opaque", ctypes.c_uint64 * 16)]


_loaded = None


def _library():
    global _loaded
    if _loaded is None:
        name = os.environ.get("ULC_LIBRARY", "libulc.so.0")
        try:
            library = ctypes.CDLL(name)
        except OSError as problem:
            raise ImportError(f"cannot load {name}: {problem}; install libulc, or name the file "
                              "by ULC_LIBRARY") from problem
        _declare(library)
        _loaded = library
    return _loaded


def _declare(library):
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    u16, u32, u64, i64 = (ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64)
    text = ctypes.c_char_p
    forms = {
        "ulc_open": [text, pointer], "ulc_close": [pointer],
        "ulc_join_wait": [pointer, text, u16, u16, i64], "ulc_leave_wait": [pointer, i64],
        "ulc_rejoin": [pointer, i64],
        "ulc_rank": [pointer], "ulc_size": [pointer], "ulc_world": [pointer],
        "ulc_peer_state": [pointer, u16], "ulc_poll": [pointer],
        "ulc_group_create": [pointer, pointer, u16, pointer], "ulc_group_free": [pointer, u32],
        "ulc_group_size": [pointer, u32], "ulc_group_index": [pointer, u32],
        "ulc_send": [pointer, u16, u64, pointer, size, pointer],
        "ulc_multicast": [pointer, u32, u64, u64, pointer, size, pointer],
        "ulc_receive": [pointer, u16, u64, u64, pointer, size, pointer],
        "ulc_probe": [pointer, u16, u64, u64, pointer],
        "ulc_test": [pointer, pointer, pointer], "ulc_cancel": [pointer, pointer],
        "ulc_wait": [pointer, i64],
        "ulc_error_text": [ctypes.c_int], "ulc_last_error_text": [], "ulc_version": [],
        "ulc_barrier_start": [pointer, u32, text, pointer],
        "ulc_broadcast_start": [pointer, u32, u16, pointer, size, text, pointer],
        "ulc_gather_start": [pointer, u32, u16, pointer, pointer, size, text, pointer],
        "ulc_scatter_start": [pointer, u32, u16, pointer, pointer, size, text, pointer],
        "ulc_allgather_start": [pointer, u32, pointer, pointer, size, text, pointer],
        "ulc_alltoall_start": [pointer, u32, pointer, pointer, size, text, pointer],
        "ulc_reduce_start": [pointer, u32, u16, pointer, pointer, size, _Reduction, text, pointer],
        "ulc_allreduce_start": [pointer, u32, pointer, pointer, size, _Reduction, text, pointer],
        "ulc_scan_start": [pointer, u32, pointer, pointer, size, _Reduction, text, pointer],
        "ulc_coll_wait": [pointer, pointer, i64],
    }
    results = {"ulc_close": None, "ulc_rank": u16, "ulc_size": u16, "ulc_world": u32,
               "ulc_group_size": u16, "ulc_group_index": u16, "ulc_error_text": text,
               "ulc_last_error_text": text, "ulc_version": text}
    for name, arguments in forms.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = results.get(name, ctypes.c_int)


def version():
    """Returns the version of the library that is loaded."""
    return _library().ulc_version().decode()


class _Memory:
    """The bytes of a contiguous buffer: address, length, and what keeps them in place."""

    def __init__(self, buffer, writable):
        view = memoryview(buffer)
        if not view.c_contiguous:
            raise ValueError("the buffer is not contiguous: give a contiguous copy of it")
        if writable and view.readonly:
            raise ValueError("the buffer is read-only: give a bytearray or an array")
        self.type = _TYPES.get((view.format.lstrip("@<="), view.itemsize))
        self.count = view.nbytes // view.itemsize if view.itemsize else 0
        self.length = view.nbytes
        self.kept = view
        if view.readonly:
            self.kept = view.tobytes()
            self.address = ctypes.cast(ctypes.c_char_p(self.kept), ctypes.c_void_p)
        elif self.length == 0:
            self.address = ctypes.c_void_p()
        else:
            self.kept = (ctypes.c_char * self.length).from_buffer(view.cast("B"))
            self.address = ctypes.c_void_p(ctypes.addressof(self.kept))


class Request:
    """One operation under way. Keeps its buffer in place until it is done."""

    def __init__(self, endpoint, memory):
        self._endpoint, self._memory = endpoint, memory
        self._request = _RequestMemory()
        self._status = None

    def test(self):
        """Returns the Status if the operation is done, else None. Polls."""
        if self._status is None:
            self._endpoint.poll()
            self._look()
        return self._status

    def wait(self, limit=None):
        """Waits until the operation is done and returns its Status. Raises Error TIMEOUT."""
        self._look()
        deadline = _deadline(limit)
        while self._status is None:
            self._endpoint._wait(deadline, "waiting for a request")
            self._look()
        return self._status

    def cancel(self):
        """Takes back a receive that has not matched; returns False if it has."""
        done = _library().ulc_cancel(self._endpoint._handle, ctypes.byref(self._request)) == OK
        if done:
            self._forget()
        return done

    def _look(self):
        if self._status is not None:
            return
        status = Status()
        code = _library().ulc_test(self._endpoint._handle, ctypes.byref(self._request),
                                   ctypes.byref(status))
        if code == AGAIN:
            return
        self._forget()
        _check(code, "testing a request")
        self._status = status
        if status.error != OK:
            raise Error(status.error, "a message")

    def _forget(self):
        self._memory = None
        self._endpoint._under_way.discard(self)


class Group:
    """Ranks of a job that one multicast reaches, for messages and collectives of its members."""

    def __init__(self, endpoint, number):
        self._endpoint, self.number = endpoint, number
        self.size = _library().ulc_group_size(endpoint._handle, number)
        self.index = _library().ulc_group_index(endpoint._handle, number)

    def free(self):
        """Forgets the group here; messages under way must have been received."""
        _check(_library().ulc_group_free(self._endpoint._handle, self.number), "freeing a group")


def _check(code, during):
    if code != OK:
        raise Error(code, during)


def _deadline(limit):
    return None if limit is None else time.monotonic() + limit


class Endpoint:
    """An endpoint of an engine, in at most one job."""

    def __init__(self, engine=None):
        """Opens it. engine: as ulc_open() of ulc.h; None: ULC_ENGINE or the default socket."""
        self._handle, self._under_way, self.world = ctypes.c_void_p(), set(), None
        name = None if engine is None else engine.encode()
        _check(_library().ulc_open(name, ctypes.byref(self._handle)), "opening an endpoint")

    def close(self):
        """Closes it; what was sent is delivered. The endpoint cannot be used any more."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        self._under_way.clear()
        if handle:
            _library().ulc_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None and self.world is not None and self._handle:
            self.leave()
        self.close()

    def join(self, job=None, rank=ANY, size=0, limit=60.0):
        """Joins a job, by default the one of the environment. Waits until it has formed."""
        name = None if job is None else job.encode()
        _check(_library().ulc_join_wait(self._handle, name, rank, size, int(limit * 1e9)),
               "joining the job")
        self._know_place()

    def rejoin(self, limit=60.0):
        """Opens it again after its engine or a peer died, and joins its job again.

        Every rank of the job calls this, after Error NO_ENGINE, CLOSED, PEER_DIED or PEER_LEFT.
        Groups from before are gone. Requests from before are done, those under way with an error.
        """
        _check(_library().ulc_rejoin(ctypes.byref(self._handle), int(limit * 1e9)),
               "joining again")
        if self.world is not None:
            self._know_place()

    def _know_place(self):
        self.rank = _library().ulc_rank(self._handle)
        self.size = _library().ulc_size(self._handle)
        self.world = Group(self, _library().ulc_world(self._handle))

    def leave(self, limit=30.0):
        """Leaves the job after all that was sent is delivered."""
        _check(_library().ulc_leave_wait(self._handle, int(limit * 1e9)), "leaving the job")
        self.world = None

    def poll(self):
        """Takes what the engine has completed. Returns the number of events."""
        events = _library().ulc_poll(self._handle)
        if events < 0:
            raise Error(-events, "polling")
        return events

    def group(self, ranks, limit=None):
        """Creates a group of the ranks in that order; every member calls this. Returns a Group."""
        array = (ctypes.c_uint16 * len(ranks))(*ranks)
        request = Request(self, array)
        self._start(_library().ulc_group_create, request, limit, "creating a group", array,
                    len(ranks))
        return Group(self, request.wait(limit).group)

    # ---- buffers

    def Isend(self, buffer, to, tag=0, limit=None):
        """Starts sending a buffer, which stays untouched until the Request is done."""
        memory = _Memory(buffer, False)
        return self._start(_library().ulc_send, Request(self, memory), limit, "sending", to, tag,
                           memory.address, memory.length)

    def Send(self, buffer, to, tag=0, limit=None):
        """Sends a buffer; returns when it may be changed."""
        self.Isend(buffer, to, tag, limit).wait(limit)

    def Imulticast(self, buffer, group=None, tag=0, limit=None):
        """Starts a multicast of a buffer to all other members of a group (default: the world)."""
        memory = _Memory(buffer, False)
        return self._start(_library().ulc_multicast, Request(self, memory), limit, "multicasting",
                           (group or self.world).number, 0, tag, memory.address, memory.length)

    def Multicast(self, buffer, group=None, tag=0, limit=None):
        """Multicasts a buffer; returns when it may be changed."""
        self.Imulticast(buffer, group, tag, limit).wait(limit)

    def Irecv(self, buffer, source=ANY, tag=0, mask=ALL_BITS):
        """Starts a receive into a buffer. mask: the bits of the tag that must agree; 0: any tag."""
        memory = _Memory(buffer, True)
        return self._start(_library().ulc_receive, Request(self, memory), None, "receiving",
                           source, tag, mask, memory.address, memory.length)

    def Recv(self, buffer, source=ANY, tag=0, mask=ALL_BITS, limit=None):
        """Receives into a buffer and returns the Status. Raises Error TRUNCATED, TIMEOUT."""
        request = self.Irecv(buffer, source, tag, mask)
        try:
            return request.wait(limit)
        except Error as problem:
            if problem.code == TIMEOUT and not request.cancel():
                return request.wait(None)
            raise

    def probe(self, source=ANY, tag=0, mask=ALL_BITS, limit=None):
        """Waits for a message that a receive would take, and returns its Status."""
        status, deadline = Status(), _deadline(limit)
        while True:
            code = _library().ulc_probe(self._handle, source, tag, mask, ctypes.byref(status))
            if code == OK:
                return status
            if code != AGAIN:
                raise Error(code, "probing")
            self._wait(deadline, "probing")

    # ---- objects

    def send(self, thing, to, tag=0, limit=None):
        """Sends an object, pickled."""
        self.Send(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), to, tag, limit)

    def multicast(self, thing, group=None, tag=0, limit=None):
        """Multicasts an object, pickled."""
        self.Multicast(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), group, tag, limit)

    def recv(self, source=ANY, tag=0, mask=ALL_BITS, limit=None):
        """Receives an object and returns it."""
        found = self.probe(source, tag, mask, limit)
        content = bytearray(found.length)
        self.Recv(content, found.source, found.tag)
        return pickle.loads(content)

    def bcast(self, thing, root=0, group=None, limit=None):
        """Returns the root's object at every member."""
        group = group or self.world
        content = bytearray()
        if group.index == root:
            content[:] = pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
        length = bytearray(len(content).to_bytes(8, "little"))
        self.Bcast(length, root, group, limit)
        if group.index != root:
            content = bytearray(int.from_bytes(length, "little"))
        self.Bcast(content, root, group, limit)
        return pickle.loads(content)

    # ---- collectives; every member of the group calls them in the same order

    def Barrier(self, group=None, limit=None):
        """Waits until all members are here."""
        self._collective("barrier", group, limit)

    def Bcast(self, buffer, root=0, group=None, limit=None):
        """Copies the root's buffer into that of every member."""
        memory = _Memory(buffer, True)
        self._collective("broadcast", group, limit, root, memory, memory.length)

    def Gather(self, send, receive, root=0, group=None, limit=None):
        """Gives the root the members' buffers one behind the other. receive: None elsewhere."""
        source, target = self._two(send, receive)
        if receive is not None:
            self._fits(target, source.length * (group or self.world).size)
        self._collective("gather", group, limit, root, source, target,
                         source.length)

    def Scatter(self, send, receive, root=0, group=None, limit=None):
        """Gives each member its block of the root's buffer. send: None elsewhere."""
        source, target = self._two(send, receive)
        if send is not None:
            self._fits(source, target.length * (group or self.world).size)
        self._collective("scatter", group, limit, root, source, target,
                         target.length)

    def Allgather(self, send, receive, group=None, limit=None):
        """Gives every member all members' buffers, one behind the other."""
        source, target = self._two(send, receive)
        self._fits(target, source.length * (group or self.world).size)
        self._collective("allgather", group, limit, source, target, source.length)

    def Alltoall(self, send, receive, group=None, limit=None):
        """Gives member j block j of the buffer of every member."""
        source, target = self._two(send, receive)
        members = (group or self.world).size
        if source.length % members:
            raise ValueError(f"{source.length} bytes are no {members} blocks of one length")
        self._fits(target, source.length)
        self._collective("alltoall", group, limit, source, target,
                         source.length // members)

    def Reduce(self, send, receive, op=SUM, root=0, group=None, limit=None):
        """Gives the root the fold of all members' arrays. receive: None elsewhere."""
        source, target = self._two(send, receive)
        if receive is not None:
            self._fits(target, source.length)
        self._collective("reduce", group, limit, root, source, target,
                         source.count, self._reduction(source, op))

    def Allreduce(self, send, receive, op=SUM, group=None, limit=None):
        """Gives every member the fold of all members' arrays."""
        source, target = self._two(send, receive)
        self._fits(target, source.length)
        self._collective("allreduce", group, limit, source, target, source.count,
                         self._reduction(source, op))

    def Scan(self, send, receive, op=SUM, group=None, limit=None):
        """Gives each member the fold of the arrays up to its own."""
        source, target = self._two(send, receive)
        self._fits(target, source.length)
        self._collective("scan", group, limit, source, target, source.count,
                         self._reduction(source, op))

    # ---- inside

    @staticmethod
    def _two(send, receive):
        return (_Memory(b"" if send is None else send, False),
                _Memory(bytearray() if receive is None else receive, True))

    @staticmethod
    def _fits(target, length):
        if target.length < length:
            raise ValueError(f"a buffer has {target.length} bytes; {length} are needed")

    @staticmethod
    def _reduction(memory, op):
        if memory.type is None:
            raise TypeError("elements of this format cannot be reduced; give an array of integers, "
                            "floats or complex numbers")
        return _Reduction(memory.type, op, None, None, 0)

    def _collective(self, name, group, limit, *arguments):
        operation = ctypes.c_void_p()
        plain = [value.address if isinstance(value, _Memory) else value for value in arguments]
        _check(getattr(_library(), f"ulc_{name}_start")(
            self._handle, (group or self.world).number, *plain, None, ctypes.byref(operation)),
            name)
        deadline = _deadline(limit)
        while True:
            code = _library().ulc_coll_wait(self._handle, operation, _SLICE_NS)
            if code != TIMEOUT:
                _check(code, name)
                return
            if deadline is not None and time.monotonic() >= deadline:
                # The library goes on with the operation, whose buffers must stay in place.
                self._under_way.add(tuple(arguments))
                raise Error(TIMEOUT, name)

    def _start(self, function, request, limit, during, *arguments):
        deadline = _deadline(limit)
        while True:
            code = function(self._handle, *arguments, ctypes.byref(request._request))
            if code != AGAIN:
                break
            self._wait(deadline, during)
        _check(code, during)
        self._under_way.add(request)
        return request

    def _wait(self, deadline, during):
        code = _library().ulc_wait(self._handle, _SLICE_NS)
        if code not in (OK, TIMEOUT):
            raise Error(code, during)
        if deadline is not None and time.monotonic() >= deadline:
            raise Error(TIMEOUT, during)
