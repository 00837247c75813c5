"""Loops and branches of the native runtime, as LLVM IR: steps that run the steps of inner programs.

The memory of a turn is described by slots: a base of the program around it, and an offset. Even and odd turns have
slots of their own, since carries may live at two places in turn. Knows the runtime's ``Step``.
"""

# Loop: steps of a turn, of the test, before all turns, behind an even and an odd number of them: addresses and counts;
# {slots of both kinds of turn, how many each has, moving slots, how many},
# {at which slot the test's begin, which slot holds its result, most turns}
LOOP = """
%Loop = type { ptr, i64, ptr, i64, ptr, i64, ptr, i64, ptr, i64, ptr, i64, ptr, i64, i64, i64, i64 }
%Slot = type { i64, i64 }
%Moving = type { i64, i64 }

; Step function: buffers are the bases of the program around it, scalars {address of the Loop}.
define void @polyax_loop(ptr %outer, ptr %scalars, i64 %begin, i64 %end) {
entry:
  %at = load ptr, ptr %scalars
  %loop = load %Loop, ptr %at
  %body = extractvalue %Loop %loop, 0
  %body.count = extractvalue %Loop %loop, 1
  %test = extractvalue %Loop %loop, 2
  %test.count = extractvalue %Loop %loop, 3
  %before = extractvalue %Loop %loop, 4
  %before.count = extractvalue %Loop %loop, 5
  %even = extractvalue %Loop %loop, 6
  %even.count = extractvalue %Loop %loop, 7
  %odd.end = extractvalue %Loop %loop, 8
  %odd.count = extractvalue %Loop %loop, 9
  %slots = extractvalue %Loop %loop, 10
  %slot.count = extractvalue %Loop %loop, 11
  %moving = extractvalue %Loop %loop, 12
  %moving.count = extractvalue %Loop %loop, 13
  %test.first = extractvalue %Loop %loop, 14
  %holds = extractvalue %Loop %loop, 15
  %turns = extractvalue %Loop %loop, 16
  %both = mul i64 %slot.count, 2
  %bases = alloca ptr, i64 %both
  br label %fill
fill:
  %n = phi i64 [0, %entry], [%n1, %filled]
  %unfilled = icmp slt i64 %n, %both
  br i1 %unfilled, label %slot, label %first
slot:
  %slot.at = getelementptr %Slot, ptr %slots, i64 %n
  %s = load %Slot, ptr %slot.at
  %base = extractvalue %Slot %s, 0
  %offset = extractvalue %Slot %s, 1
  %absent = icmp slt i64 %base, 0
  br i1 %absent, label %filled, label %given
given:
  %given.at = getelementptr ptr, ptr %outer, i64 %base
  %memory = load ptr, ptr %given.at
  %inside = getelementptr i8, ptr %memory, i64 %offset
  br label %filled
filled:
  %place = phi ptr [null, %slot], [%inside, %given]
  %base.at = getelementptr ptr, ptr %bases, i64 %n
  store ptr %place, ptr %base.at
  %n1 = add i64 %n, 1
  br label %fill
first:
  call void @polyax_run(ptr %before, i64 %before.count, ptr %outer)
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
  %uneven = icmp ne i64 %odd, 0
  %behind = select i1 %uneven, ptr %odd.end, ptr %even
  %behind.count = select i1 %uneven, i64 %odd.count, i64 %even.count
  call void @polyax_run(ptr %behind, i64 %behind.count, ptr %outer)
  ret void
}

; Step function: buffers are bases; scalars {base and offset of the number of a branch, an i32, a Loop for each}.
define void @polyax_cond(ptr %outer, ptr %scalars, i64 %begin, i64 %end) {
  %base = load i64, ptr %scalars
  %offset.at = getelementptr i64, ptr %scalars, i64 1
  %offset = load i64, ptr %offset.at
  %base.at = getelementptr ptr, ptr %outer, i64 %base
  %memory = load ptr, ptr %base.at
  %at = getelementptr i8, ptr %memory, i64 %offset
  %number = load i32, ptr %at
  %index = sext i32 %number to i64
  %skip = add i64 %index, 2
  %branch = getelementptr i64, ptr %scalars, i64 %skip
  call void @polyax_loop(ptr %outer, ptr %branch, i64 0, i64 1)
  ret void
}
"""
