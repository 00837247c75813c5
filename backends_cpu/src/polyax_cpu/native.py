"""The native runtime, as LLVM IR: a pool of threads, and the loop that runs a program's steps. No Python inside.

Everything that a program does (kernels, products, copies) is a function of one type, ``void f(void **buffers, const
int64_t *scalars, int64_t begin, int64_t end)`` over a range that may be cut in pieces. The thread that asks takes part,
so a job ends even if all workers are busy; pieces never wait for anything.
"""

from polyax_cpu.large_arguments import EXACT, define_exact
from polyax_cpu.llvm import Module
from polyax_cpu.native_loops import LOOP

MAX_OPERANDS = 128
"""Buffers of one step."""
SPINS = 20_000
"""How often an idle worker looks for work before it sleeps (some hundreds of microseconds). Programs that follow each
other then find it awake; one that sleeps is often woken on the core of the thread that wakes it, and waits for it."""

# Step: {function, scalars, begin, end, pieces, operand count, operands}; operand: {base number, byte offset}
# Job:  {function, buffers, scalars, begin, end, size of a piece, next piece, pieces, workers in it, next job}
# Pool: {mutex, condition for workers, first job}; mutex and condition have room for any platform's
RUNTIME = """
%Step = type { ptr, ptr, i64, i64, i64, i64, ptr }
%Operand = type { i64, i64 }
%Job = type { ptr, ptr, ptr, i64, i64, i64, i64, i64, i64, ptr }
%Pool = type { [128 x i8], [128 x i8], ptr }
@pool = internal global %Pool zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
PAUSE_DECLARATION

; Starts the workers; returns how many. The state is built anew, so that a child process can call it after fork.
define i64 @polyax_start(i64 %workers) {
entry:
  store %Pool zeroinitializer, ptr @pool
  %condition = getelementptr %Pool, ptr @pool, i64 0, i32 1
  call i32 @pthread_mutex_init(ptr @pool, ptr null)
  call i32 @pthread_cond_init(ptr %condition, ptr null)
  %thread = alloca i64
  br label %next
next:
  %n = phi i64 [0, %entry], [%n1, %started]
  %more = icmp slt i64 %n, %workers
  br i1 %more, label %start, label %end
start:
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @work, ptr null)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %started, label %end
started:
  %id = load i64, ptr %thread
  call i32 @pthread_detach(i64 %id)
  %n1 = add i64 %n, 1
  br label %next
end:
  ret i64 %n
}

; A worker: looks a while without the lock, then under it, and sleeps where there is nothing.
define internal ptr @work(ptr %unused) {
entry:
  %condition = getelementptr %Pool, ptr @pool, i64 0, i32 1
  %first = getelementptr %Pool, ptr @pool, i64 0, i32 2
  br label %idle
idle:
  br label %spin
spin:
  %spins = phi i64 [0, %idle], [%spins1, %spinning]
  %seen = load atomic ptr, ptr %first monotonic, align 8
  %some = icmp ne ptr %seen, null
  br i1 %some, label %lock, label %spinning
spinning:
  PAUSE
  %spins1 = add i64 %spins, 1
  %on = icmp slt i64 %spins1, SPINS
  br i1 %on, label %spin, label %lock
lock:
  call i32 @pthread_mutex_lock(ptr @pool)
  br label %look
look:
  %job = load atomic ptr, ptr %first monotonic, align 8
  %found = icmp ne ptr %job, null
  br i1 %found, label %join, label %sleep
sleep:
  call i32 @pthread_cond_wait(ptr %condition, ptr @pool)
  br label %look
join:
  %inside = getelementptr %Job, ptr %job, i64 0, i32 8
  atomicrmw add ptr %inside, i64 1 monotonic
  call i32 @pthread_mutex_unlock(ptr @pool)
  call void @take(ptr %job)
  call i32 @pthread_mutex_lock(ptr @pool)
  call void @remove(ptr %job)
  call i32 @pthread_mutex_unlock(ptr @pool)
  atomicrmw sub ptr %inside, i64 1 release
  br label %idle
}

; Computes pieces of a job until none is left.
define internal void @take(ptr %job) {
entry:
  %j = load %Job, ptr %job
  %f = extractvalue %Job %j, 0
  %buffers = extractvalue %Job %j, 1
  %scalars = extractvalue %Job %j, 2
  %begin = extractvalue %Job %j, 3
  %end = extractvalue %Job %j, 4
  %size = extractvalue %Job %j, 5
  %pieces = extractvalue %Job %j, 7
  %counter = getelementptr %Job, ptr %job, i64 0, i32 6
  br label %next
next:
  %n = atomicrmw add ptr %counter, i64 1 monotonic
  %more = icmp slt i64 %n, %pieces
  br i1 %more, label %run, label %done
run:
  %skip = mul i64 %n, %size
  %from = add i64 %begin, %skip
  %full = add i64 %from, %size
  %to = call i64 @llvm.smin.i64(i64 %full, i64 %end)
  call void %f(ptr %buffers, ptr %scalars, i64 %from, i64 %to)
  br label %next
done:
  ret void
}
declare i64 @llvm.smin.i64(i64, i64)

; Takes a job off the list, if it is still there. The lock is held.
define internal void @remove(ptr %job) {
entry:
  %first = getelementptr %Pool, ptr @pool, i64 0, i32 2
  br label %next
next:
  %link = phi ptr [%first, %entry], [%after, %on]
  %at = load atomic ptr, ptr %link monotonic, align 8
  %end = icmp eq ptr %at, null
  br i1 %end, label %done, label %compare
compare:
  %after = getelementptr %Job, ptr %at, i64 0, i32 9
  %same = icmp eq ptr %at, %job
  br i1 %same, label %unlink, label %on
on:
  br label %next
unlink:
  %rest = load ptr, ptr %after
  store atomic ptr %rest, ptr %link monotonic, align 8
  br label %done
done:
  ret void
}

; Runs f over begin..end in pieces of %size, on this thread and on workers that are free; returns when all are done.
define void @polyax_parallel(ptr %f, ptr %buffers, ptr %scalars, i64 %begin, i64 %end, i64 %size, i64 %pieces) {
entry:
  %job = alloca %Job
  %first = getelementptr %Pool, ptr @pool, i64 0, i32 2
  %condition = getelementptr %Pool, ptr @pool, i64 0, i32 1
  %j0 = insertvalue %Job zeroinitializer, ptr %f, 0
  %j1 = insertvalue %Job %j0, ptr %buffers, 1
  %j2 = insertvalue %Job %j1, ptr %scalars, 2
  %j3 = insertvalue %Job %j2, i64 %begin, 3
  %j4 = insertvalue %Job %j3, i64 %end, 4
  %j5 = insertvalue %Job %j4, i64 %size, 5
  %j6 = insertvalue %Job %j5, i64 %pieces, 7
  store %Job %j6, ptr %job
  call i32 @pthread_mutex_lock(ptr @pool)
  %others = load ptr, ptr %first
  %link = getelementptr %Job, ptr %job, i64 0, i32 9
  store ptr %others, ptr %link
  store atomic ptr %job, ptr %first monotonic, align 8
  call i32 @pthread_cond_broadcast(ptr %condition)
  call i32 @pthread_mutex_unlock(ptr @pool)
  call void @take(ptr %job)
  call i32 @pthread_mutex_lock(ptr @pool)
  call void @remove(ptr %job)
  call i32 @pthread_mutex_unlock(ptr @pool)
  %inside = getelementptr %Job, ptr %job, i64 0, i32 8
  br label %wait
wait:
  %turns = phi i64 [0, %entry], [%turns1, %again]
  %left = load atomic i64, ptr %inside acquire, align 8
  %busy = icmp ne i64 %left, 0
  br i1 %busy, label %longer, label %done
longer:
  PAUSE
  %turns1 = add i64 %turns, 1
  %low = and i64 %turns1, 255
  %much = icmp eq i64 %low, 0
  br i1 %much, label %yield, label %again
yield:
  call i32 @sched_yield()
  br label %again
again:
  br label %wait
done:
  ret void
}

; Runs the steps of a program on the memory that the bases point to. A step of -1 operands gets these themselves.
define void @polyax_run(ptr %steps, i64 %count, ptr %bases) {
entry:
  %pointers = alloca [MAX_OPERANDS x ptr]
  br label %next
next:
  %n = phi i64 [0, %entry], [%n1, %end]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %step, label %done
step:
  %at = getelementptr %Step, ptr %steps, i64 %n
  %s = load %Step, ptr %at
  %f = extractvalue %Step %s, 0
  %scalars = extractvalue %Step %s, 1
  %from = extractvalue %Step %s, 2
  %to = extractvalue %Step %s, 3
  %pieces = extractvalue %Step %s, 4
  %operands = extractvalue %Step %s, 5
  %places = extractvalue %Step %s, 6
  br label %operand
operand:
  %k = phi i64 [0, %step], [%k1, %place]
  %another = icmp slt i64 %k, %operands
  br i1 %another, label %place, label %launch
place:
  %where = getelementptr %Operand, ptr %places, i64 %k
  %base = load i64, ptr %where
  %offset.at = getelementptr %Operand, ptr %where, i64 0, i32 1
  %offset = load i64, ptr %offset.at
  %base.at = getelementptr ptr, ptr %bases, i64 %base
  %memory = load ptr, ptr %base.at
  %address = getelementptr i8, ptr %memory, i64 %offset
  %slot = getelementptr ptr, ptr %pointers, i64 %k
  store ptr %address, ptr %slot
  %k1 = add i64 %k, 1
  br label %operand
launch:
  %whole = icmp slt i64 %operands, 0
  br i1 %whole, label %inner, label %flat
inner:
  call void %f(ptr %bases, ptr %scalars, i64 %from, i64 %to)
  br label %end
flat:
  %alone = icmp sle i64 %pieces, 1
  br i1 %alone, label %direct, label %split
direct:
  call void %f(ptr %pointers, ptr %scalars, i64 %from, i64 %to)
  br label %end
split:
  %span = sub i64 %to, %from
  %even = sdiv i64 %span, %pieces
  %plus = add i64 %even, 1
  %unit = icmp sge i64 %even, 64
  %up = add i64 %even, 63
  %lines = and i64 %up, -64
  %size0 = select i1 %unit, i64 %lines, i64 %plus
  %size1 = sub i64 %size0, 1
  %all = add i64 %span, %size1
  %parts = sdiv i64 %all, %size0
  call void @polyax_parallel(ptr %f, ptr %pointers, ptr %scalars, i64 %from, i64 %to, i64 %size0, i64 %parts)
  br label %end
end:
  %n1 = add i64 %n, 1
  br label %next
done:
  ret void
}

; A Python function (METH_FASTCALL): runs a table on the memory of the Python objects in a list, at their `pointer`.
; The capsule holds {steps, count, whether to release the interpreter's lock, the name of the attribute}.
%Table = type { ptr, i64, i64, ptr }
@_Py_NoneStruct = external global i8
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i64 @PyList_Size(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
define ptr @polyax_call(ptr %self, ptr %args, i64 %nargs) {
entry:
  %capsule = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
  %table = load %Table, ptr %capsule
  %steps = extractvalue %Table %table, 0
  %count = extractvalue %Table %table, 1
  %release = extractvalue %Table %table, 2
  %name = extractvalue %Table %table, 3
  %list = load ptr, ptr %args
  %size = call i64 @PyList_Size(ptr %list)
  %bases = alloca ptr, i64 %size
  br label %next
next:
  %n = phi i64 [0, %entry], [%n1, %on]
  %more = icmp slt i64 %n, %size
  br i1 %more, label %item, label %packed
item:
  %object = call ptr @PyList_GetItem(ptr %list, i64 %n)
  %slot = getelementptr ptr, ptr %bases, i64 %n
  store ptr null, ptr %slot
  %absent = icmp eq ptr %object, @_Py_NoneStruct
  br i1 %absent, label %on, label %present
present:
  %number = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %missing = icmp eq ptr %number, null
  br i1 %missing, label %failed, label %got
got:
  %pointer = call ptr @PyLong_AsVoidPtr(ptr %number)
  call void @Py_DecRef(ptr %number)
  store ptr %pointer, ptr %slot
  br label %on
on:
  %n1 = add i64 %n, 1
  br label %next
packed:
  %long = icmp ne i64 %release, 0
  br i1 %long, label %aside, label %here
aside:
  %state = call ptr @PyEval_SaveThread()
  call void @polyax_run(ptr %steps, i64 %count, ptr %bases)
  call void @PyEval_RestoreThread(ptr %state)
  br label %done
here:
  call void @polyax_run(ptr %steps, i64 %count, ptr %bases)
  br label %done
done:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
failed:
  ret ptr null
}

; Step function: buffers {source, target}, scalars {}; bytes begin..end.
define void @polyax_copy(ptr %buffers, ptr %scalars, i64 %begin, i64 %end) {
  %source = load ptr, ptr %buffers
  %target.at = getelementptr ptr, ptr %buffers, i64 1
  %target = load ptr, ptr %target.at
  %from = getelementptr i8, ptr %source, i64 %begin
  %to = getelementptr i8, ptr %target, i64 %begin
  %size = sub i64 %end, %begin
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  ret void
}
"""
EXPORTS = ("polyax_start", "polyax_parallel", "polyax_call", "polyax_copy", "polyax_loop", "polyax_cond", *EXACT)
_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def source(triple: str) -> str:
    """The runtime's text for a processor; one without a known pause yields its time slice."""
    declaration, pause = _PAUSES.get(triple.split("-")[0], ("", "call i32 @sched_yield()"))
    text = (RUNTIME + LOOP).replace("PAUSE_DECLARATION", declaration).replace("PAUSE", pause)
    exact = Module(EXACT)
    define_exact(exact)
    text += exact.text()
    return text.replace("SPINS", str(SPINS)).replace("MAX_OPERANDS", str(MAX_OPERANDS))
