"""Loops and branches of the native runtime, as LLVM IR: steps that run the steps of inner programs.

The memory of a turn is described by slots: an operand of the loop, a place in scratch memory of its own, or an address.
Even and odd turns have slots of their own, since carries may live at two places in turn. Knows the runtime's ``Step``.
"""

# Loop: the first field of each pair is an address, the second a count.
# {steps before, steps of the test, steps of a turn, steps behind, slots of both kinds of turn, moving slots},
# {at which base the test's begin, which base holds its result, most turns, bytes of scratch}
LOOP = """
%Loop = type { ptr, i64, ptr, i64, ptr, i64, ptr, i64, ptr, i64, ptr, i64, i64, i64, i64, i64 }
%Slot = type { i64, i64, i64 }
%Moving = type { i64, i64 }
declare ptr @malloc(i64)
declare void @free(ptr)

; Step function: buffers are the loop's operands, scalars {address of the Loop}.
define void @polyax_loop(ptr %buffers, ptr %scalars, i64 %begin, i64 %end) {
entry:
  %at = load ptr, ptr %scalars
  %loop = load %Loop, ptr %at
  %before = extractvalue %Loop %loop, 0
  %before.count = extractvalue %Loop %loop, 1
  %test = extractvalue %Loop %loop, 2
  %test.count = extractvalue %Loop %loop, 3
  %body = extractvalue %Loop %loop, 4
  %body.count = extractvalue %Loop %loop, 5
  %behind = extractvalue %Loop %loop, 6
  %behind.count = extractvalue %Loop %loop, 7
  %slots = extractvalue %Loop %loop, 8
  %slot.count = extractvalue %Loop %loop, 9
  %moving = extractvalue %Loop %loop, 10
  %moving.count = extractvalue %Loop %loop, 11
  %test.first = extractvalue %Loop %loop, 12
  %holds = extractvalue %Loop %loop, 13
  %turns = extractvalue %Loop %loop, 14
  %bytes = extractvalue %Loop %loop, 15
  %both = mul i64 %slot.count, 2
  %bases = alloca ptr, i64 %both
  %room = add i64 %bytes, 64
  %block = call ptr @malloc(i64 %room)
  %start = ptrtoint ptr %block to i64
  %up = add i64 %start, 63
  %aligned = and i64 %up, -64
  %scratch = inttoptr i64 %aligned to ptr
  br label %fill
fill:
  %n = phi i64 [0, %entry], [%n1, %filled]
  %unfilled = icmp slt i64 %n, %both
  br i1 %unfilled, label %slot, label %first
slot:
  %slot.at = getelementptr %Slot, ptr %slots, i64 %n
  %s = load %Slot, ptr %slot.at
  %kind = extractvalue %Slot %s, 0
  %value = extractvalue %Slot %s, 1
  %offset = extractvalue %Slot %s, 2
  switch i64 %kind, label %fixed [i64 0, label %operand i64 1, label %own]
operand:
  %given.at = getelementptr ptr, ptr %buffers, i64 %value
  %given = load ptr, ptr %given.at
  br label %filled
own:
  %inside = getelementptr i8, ptr %scratch, i64 %value
  br label %filled
fixed:
  %address = inttoptr i64 %value to ptr
  br label %filled
filled:
  %memory = phi ptr [%given, %operand], [%inside, %own], [%address, %fixed]
  %place = getelementptr i8, ptr %memory, i64 %offset
  %base.at = getelementptr ptr, ptr %bases, i64 %n
  store ptr %place, ptr %base.at
  %n1 = add i64 %n, 1
  br label %fill
first:
  call void @polyax_run(ptr %before, i64 %before.count, ptr %bases)
  br label %turn
turn:
  %i = phi i64 [0, %first], [%i1, %turned]
  %odd = and i64 %i, 1
  %skip = mul i64 %odd, %slot.count
  %frame = getelementptr ptr, ptr %bases, i64 %skip
  %more = icmp slt i64 %i, %turns
  br i1 %more, label %ask, label %last
ask:
  %tested = icmp sgt i64 %holds, -1
  br i1 %tested, label %try, label %work
try:
  %test.bases = getelementptr ptr, ptr %frame, i64 %test.first
  call void @polyax_run(ptr %test, i64 %test.count, ptr %test.bases)
  %flag.at = getelementptr ptr, ptr %frame, i64 %holds
  %flag.memory = load ptr, ptr %flag.at
  %flag = load i8, ptr %flag.memory
  %over = icmp eq i8 %flag, 0
  br i1 %over, label %last, label %work
work:
  call void @polyax_run(ptr %body, i64 %body.count, ptr %frame)
  br label %advance
advance:
  %m = phi i64 [0, %work], [%m1, %move]
  %unmoved = icmp slt i64 %m, %moving.count
  br i1 %unmoved, label %move, label %turned
move:
  %moving.at = getelementptr %Moving, ptr %moving, i64 %m
  %which.stride = load %Moving, ptr %moving.at
  %which = extractvalue %Moving %which.stride, 0
  %stride = extractvalue %Moving %which.stride, 1
  %row.at = getelementptr ptr, ptr %bases, i64 %which
  %row = load ptr, ptr %row.at
  %next = getelementptr i8, ptr %row, i64 %stride
  store ptr %next, ptr %row.at
  %m1 = add i64 %m, 1
  br label %advance
turned:
  %i1 = add i64 %i, 1
  br label %turn
last:
  call void @polyax_run(ptr %behind, i64 %behind.count, ptr %frame)
  call void @free(ptr %block)
  ret void
}

; Step function: the first buffer holds the number of a branch, an i32; scalars hold the address of a Loop for each.
define void @polyax_cond(ptr %buffers, ptr %scalars, i64 %begin, i64 %end) {
  %at = load ptr, ptr %buffers
  %number = load i32, ptr %at
  %index = sext i32 %number to i64
  %branch = getelementptr i64, ptr %scalars, i64 %index
  call void @polyax_loop(ptr %buffers, ptr %branch, i64 0, i64 1)
  ret void
}
"""
