"""``polyax.profiler``: traces of a process, and the live memory of its devices. Re-exports only."""

from polyax.profiler.memory import device_memory_profile as device_memory_profile
from polyax.profiler.memory import save_device_memory_profile as save_device_memory_profile
from polyax.profiler.reading import ProfileData as ProfileData
from polyax.profiler.reading import ProfileEvent as ProfileEvent
from polyax.profiler.reading import ProfilePlane as ProfilePlane
from polyax.profiler.serving import register_subprocess as register_subprocess
from polyax.profiler.serving import start_server as start_server
from polyax.profiler.serving import stop_server as stop_server
from polyax.profiler.traces import ProfileOptions as ProfileOptions
from polyax.profiler.traces import StepTraceAnnotation as StepTraceAnnotation
from polyax.profiler.traces import TraceAnnotation as TraceAnnotation
from polyax.profiler.traces import annotate_function as annotate_function
from polyax.profiler.traces import start_trace as start_trace
from polyax.profiler.traces import stop_trace as stop_trace
from polyax.profiler.traces import trace as trace
