! SPDX-License-Identifier: BSD-3-Clause
! Ping-pong between ranks 0 and 1 with `use mpi`: lengths, an array section, double precision.
program pingpong
  use mpi
  implicit none
  integer, parameter :: lengths(5) = [0, 1, 3, 1000, 200000]
  integer :: ierr, rank, l, n, i, got, wrong, every
  integer :: status(MPI_STATUS_SIZE)
  double precision, allocatable :: x(:), y(:)
  double precision :: grid(20, 30)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  wrong = 0
  do l = 1, size(lengths)
    n = lengths(l)
    allocate (x(n + 1), y(n + 1))
    x = [(i * 0.5d0, i = 1, n + 1)]
    y = -1
    if (rank == 0) then
      call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 1, l, MPI_COMM_WORLD, ierr)
      call MPI_Recv(y, n + 1, MPI_DOUBLE_PRECISION, 1, l, MPI_COMM_WORLD, status, ierr)
      call MPI_Get_count(status, MPI_DOUBLE_PRECISION, got, ierr)
      if (got /= n) wrong = wrong + 1
      if (any(y(1:n) /= 2 * x(1:n))) wrong = wrong + 1
      if (y(n + 1) /= -1) wrong = wrong + 1
    else if (rank == 1) then
      call MPI_Recv(y, n + 1, MPI_DOUBLE_PRECISION, 0, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
      if (status(MPI_TAG) /= l .or. status(MPI_SOURCE) /= 0) wrong = wrong + 1
      y = 2 * y
      call MPI_Send(y, n, MPI_DOUBLE_PRECISION, 0, l, MPI_COMM_WORLD, ierr)
    end if
    deallocate (x, y)
  end do
  ! A row lies scattered in memory: the compiler or the MPI packs it.
  grid = rank
  if (rank == 0) call MPI_Send(grid(7, :), 30, MPI_DOUBLE_PRECISION, 1, 9, MPI_COMM_WORLD, ierr)
  if (rank == 1) then
    call MPI_Recv(grid(:, 5:6), 40, MPI_DOUBLE_PRECISION, 0, 9, MPI_COMM_WORLD, status, ierr)
    if (any(grid(:, 5) /= 0) .or. any(grid(1:10, 6) /= 0)) wrong = wrong + 1
    if (any(grid(11:, 6) /= 1) .or. any(grid(:, 4) /= 1)) wrong = wrong + 1
  end if
  call MPI_Reduce(wrong, every, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. every == 0) print '(A)', 'all right'
  if (rank == 0 .and. every /= 0) print *, every, 'wrong'
  call MPI_Finalize(ierr)
end program pingpong
