"""Streams and events of ``torch.cuda``.

There is one order of work, that of the calls, and a call returns when its work is done.
"""

import threading
import time

from .tensors import CUDA, index


class _Thread(threading.local):
    stream = None


_thread = _Thread()


class Event:
    """A moment. Work before it is over when it is recorded."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self.enable_timing = enable_timing
        self.device = CUDA
        self.cuda_event = 0
        self._time = None

    def record(self, stream=None):
        self._time = time.perf_counter()

    def elapsed_time(self, end_event):
        """Milliseconds between this event and a later one."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("both events must be created with `enable_timing=True`")
        if self._time is None or end_event._time is None:
            raise ValueError("both events must be recorded before the time between them is asked for")
        return (end_event._time - self._time) * 1e3

    def wait(self, stream=None):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True

    def ipc_handle(self):
        raise RuntimeError("events are of one process where `cuda` is served by the CPU")

    def __repr__(self):
        return "torch.cuda.Event (served by the CPU)"


class Stream:
    """An order of work. Here there is one order, that of the calls."""

    _last = 0

    def __init__(self, device=None, priority=0, **kwargs):
        index(device)
        self.device = CUDA
        self.device_index = 0
        self.device_type = 1
        self.priority = priority
        Stream._last += 1
        self.stream_id = self.cuda_stream = Stream._last

    def wait_event(self, event):
        pass

    def wait_stream(self, stream):
        pass

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self):
        return True

    def synchronize(self):
        pass

    def is_capturing(self):
        return False

    @staticmethod
    def priority_range():
        return 0, -5

    def __enter__(self):
        self._entered = StreamContext(self)
        self._entered.__enter__()
        return self

    def __exit__(self, *exception):
        self._entered.__exit__(*exception)

    def __eq__(self, other):
        return isinstance(other, Stream) and self.stream_id == other.stream_id

    def __hash__(self):
        return hash(self.stream_id)

    def __repr__(self):
        return f"<torch.cuda.Stream device={CUDA} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    def __init__(self, stream_ptr, device=None, **kwargs):
        super().__init__(device)
        self.stream_id = self.cuda_stream = stream_ptr


_default_stream = ExternalStream(0)


class StreamContext:
    """Makes a stream this thread's current one."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        self._before = _thread.stream
        if self.stream is not None:
            _thread.stream = self.stream

    def __exit__(self, *exception):
        _thread.stream = self._before


def stream(stream):
    return StreamContext(stream)


def current_stream(device=None):
    return _thread.stream or _default_stream


def default_stream(device=None):
    return _default_stream


def set_stream(stream):
    if stream is not None:
        _thread.stream = stream


def get_stream_from_external(data_ptr, device=None):
    return ExternalStream(data_ptr, device)
