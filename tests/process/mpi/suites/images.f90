! SPDX-License-Identifier: BSD-3-Clause
! Coarrays: puts and gets between all images, an event, an atomic counter, collectives. Prints
! "images: N passed" once.
program images
  use, intrinsic :: iso_fortran_env, only: atomic_int_kind, event_type
  implicit none
  integer, parameter :: count = 5000
  integer :: box(count)[*], sum_of_all, me, n, other, i, found
  integer(atomic_int_kind) :: counter[*]
  type(event_type) :: told[*]
  logical :: right

  me = this_image()
  n = num_images()
  right = .true.
  box = me
  counter = 0
  sync all
  do other = 1, n
    if (any(box(1:count:7)[other] /= other)) right = .false.
    call atomic_add(counter[1], 1)
  end do
  sync all
  do i = me, count, n
    box(i)[mod(me, n) + 1] = 1000 * me
  end do
  event post(told[mod(me, n) + 1])
  event wait(told)
  other = mod(me + n - 2, n) + 1
  if (any(box(other:count:n) /= 1000 * other)) right = .false.
  sum_of_all = me
  call co_sum(sum_of_all)
  if (sum_of_all /= n * (n + 1) / 2) right = .false.
  if (me == 1) box = 77
  call co_broadcast(box, source_image=1)
  if (any(box /= 77)) right = .false.
  call atomic_ref(found, counter[1])
  if (found /= n * n) right = .false.
  if (.not. right) error stop "images: wrong"
  sync all
  if (me == 1) print "(a, i0, a)", "images: ", n, " passed"
end program
