"""The functions of numba's runtime that compiled code calls, written in LLVM IR.

They allocate and free arrays, and reshape contiguous arrays. An allocated block has the layout of
numba's own blocks: it begins with the reference count, the destructor, the destructor's argument,
the data pointer and the number of bytes.
"""

RUNTIME = """
declare ptr @malloc(i64)
declare void @free(ptr)

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %wide = zext i32 %align to i64
  %head = add i64 %wide, 48
  %bytes = add i64 %size, %head
  %info = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %info, null
  br i1 %none, label %exit, label %fill
fill:
  store i64 1, ptr %info
  %begin = ptrtoint ptr %info to i64
  %after = add i64 %begin, %head
  %over = urem i64 %after, %wide
  %data = sub i64 %after, %over
  %place = getelementptr i8, ptr %info, i64 24
  store i64 %data, ptr %place
  %extent = getelementptr i8, ptr %info, i64 32
  store i64 %size, ptr %extent
  br label %exit
exit:
  ret ptr %info
}

define ptr @NRT_MemInfo_alloc(i64 %size) {
  %info = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %info
}

define void @NRT_MemInfo_call_dtor(ptr %info) {
  call void @free(ptr %info)
  ret void
}

define ptr @NRT_Allocate(i64 %size) {
  %block = call ptr @malloc(i64 %size)
  ret ptr %block
}

define void @NRT_Free(ptr %block) {
  call void @free(ptr %block)
  ret void
}

define i32 @numba_attempt_nocopy_reshape(i64 %nd, ptr %dims, ptr %strides, i64 %newnd,
                                         ptr %newdims, ptr %newstrides, i64 %itemsize, i32 %f) {
entry:
  %fortran = icmp ne i32 %f, 0
  br i1 %fortran, label %refused, label %old
old:
  %n = phi i64 [%nd, %entry], [%m, %contiguous]
  %wanted = phi i64 [%itemsize, %entry], [%next, %contiguous]
  %all = icmp eq i64 %n, 0
  br i1 %all, label %new, label %compare
compare:
  %m = sub i64 %n, 1
  %at = getelementptr i64, ptr %strides, i64 %m
  %stride = load i64, ptr %at
  %to = getelementptr i64, ptr %dims, i64 %m
  %dim = load i64, ptr %to
  %same = icmp eq i64 %stride, %wanted
  %few = icmp ult i64 %dim, 2
  %fits = or i1 %same, %few
  br i1 %fits, label %contiguous, label %refused
contiguous:
  %next = mul i64 %wanted, %dim
  br label %old
new:
  %i = phi i64 [%newnd, %old], [%j, %put]
  %bytes = phi i64 [%itemsize, %old], [%more, %put]
  %done = icmp eq i64 %i, 0
  br i1 %done, label %accepted, label %put
put:
  %j = sub i64 %i, 1
  %there = getelementptr i64, ptr %newstrides, i64 %j
  store i64 %bytes, ptr %there
  %from = getelementptr i64, ptr %newdims, i64 %j
  %newdim = load i64, ptr %from
  %more = mul i64 %bytes, %newdim
  br label %new
accepted:
  ret i32 1
refused:
  ret i32 0
}
"""
