C     Fortran's types, its pairs for MINLOC, an operator of the program,
C     and MPI_IN_PLACE of mpif.h.
      program fortran
      include 'mpif.h'
      integer ierr, rank, ranks, i, wrong, every, larger, most(7)
      integer mine(7)
      external greatest
      double precision pair(2), least(2), x(1000)
      complex z, zsum
      logical l, lall
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      wrong = 0
      do i = 1, 1000
        x(i) = -1
        if (rank .eq. 1) x(i) = i
      end do
      call MPI_BCAST(x, 1000, MPI_DOUBLE_PRECISION, 1,
     &               MPI_COMM_WORLD, ierr)
      do i = 1, 1000
        if (x(i) .ne. i) wrong = wrong + 1
      end do
      pair(1) = -rank
      pair(2) = rank
      call MPI_ALLREDUCE(pair, least, 1, MPI_2DOUBLE_PRECISION,
     &                   MPI_MINLOC, MPI_COMM_WORLD, ierr)
      if (least(1) .ne. 1 - ranks) wrong = wrong + 1
      if (least(2) .ne. ranks - 1) wrong = wrong + 1
      call MPI_ALLREDUCE(MPI_IN_PLACE, x, 1000, MPI_DOUBLE_PRECISION,
     &                   MPI_SUM, MPI_COMM_WORLD, ierr)
      do i = 1, 1000
        if (x(i) .ne. i * ranks) wrong = wrong + 1
      end do
      z = cmplx(rank, 1)
      call MPI_ALLREDUCE(z, zsum, 1, MPI_COMPLEX, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      if (zsum .ne. cmplx(ranks * (ranks - 1) / 2, ranks))
     &  wrong = wrong + 1
      l = rank .ne. 1
      call MPI_ALLREDUCE(l, lall, 1, MPI_LOGICAL, MPI_LAND,
     &                   MPI_COMM_WORLD, ierr)
      if (lall) wrong = wrong + 1
      call MPI_OP_CREATE(greatest, .true., larger, ierr)
      do i = 1, 7
        mine(i) = i * mod(rank + i, ranks)
      end do
      call MPI_ALLREDUCE(mine, most, 7, MPI_INTEGER, larger,
     &                   MPI_COMM_WORLD, ierr)
      call MPI_OP_FREE(larger, ierr)
      do i = 1, 7
        if (most(i) .ne. i * (ranks - 1)) wrong = wrong + 1
      end do
      call MPI_REDUCE(wrong, every, 1, MPI_INTEGER, MPI_SUM, 0,
     &                MPI_COMM_WORLD, ierr)
      if (rank .eq. 0 .and. every .eq. 0) print '(A)', 'all right'
      if (rank .eq. 0 .and. every .ne. 0) print *, every, 'wrong'
      call MPI_FINALIZE(ierr)
      end

      subroutine greatest(given, most, count, type)
      integer count, given(count), most(count), type, i
      do i = 1, count
        most(i) = max(most(i), given(i))
      end do
      end
