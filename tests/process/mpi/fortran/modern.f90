! SPDX-License-Identifier: BSD-3-Clause
! Collectives with `use mpi_f08`.
program modern
  use mpi_f08
  implicit none
  integer :: rank, ranks, i, wrong, every
  integer :: numbers(500)
  double precision :: x(40)
  type(MPI_Comm) :: dup

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  wrong = 0
  call MPI_Barrier(MPI_COMM_WORLD)
  numbers = -1
  if (rank == ranks - 1) numbers = [(i, i = 1, 500)]
  call MPI_Bcast(numbers, 500, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD)
  if (any(numbers /= [(i, i = 1, 500)])) wrong = wrong + 1
  x = rank
  call MPI_Allreduce(MPI_IN_PLACE, x, 40, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (any(x /= ranks * (ranks - 1) / 2)) wrong = wrong + 1
  do i = 1, 3
    call MPI_Comm_dup(MPI_COMM_WORLD, dup)
    numbers(1) = 0
    if (rank == 0) numbers(1) = i
    call MPI_Bcast(numbers, 1, MPI_INTEGER, 0, dup)
    if (numbers(1) /= i) wrong = wrong + 1
    call MPI_Comm_free(dup)
  end do
  call MPI_Reduce(wrong, every, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0 .and. every == 0) print '(A)', 'all right'
  if (rank == 0 .and. every /= 0) print *, every, 'wrong'
  call MPI_Finalize()
end program modern
