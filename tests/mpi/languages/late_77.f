C     SPDX-License-Identifier: BSD-3-Clause
C     A large message that is late, through mpif.h.
      program late77
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 1000000)
      double precision buffer(n)
      integer rank, ierr, i, wrong, status(MPI_STATUS_SIZE)
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      do i = 1, n
         buffer(i) = i * (1 - rank)
      end do
      if (rank .eq. 0) then
         call MPI_SEND(buffer, n, MPI_DOUBLE_PRECISION, 1, 3,
     &                 MPI_COMM_WORLD, ierr)
      else
C        Only when it is there: then it is late, however busy the host is.
         call MPI_PROBE(0, 3, MPI_COMM_WORLD, status, ierr)
         call MPI_RECV(buffer, n, MPI_DOUBLE_PRECISION, 0, 3,
     &                 MPI_COMM_WORLD, status, ierr)
         wrong = 0
         do i = 1, n
            if (buffer(i) .ne. i) wrong = wrong + 1
         end do
         if (wrong .eq. 0) then
            print *, 'No Errors'
         else
            print *, wrong, ' are wrong'
         end if
      end if
      call MPI_FINALIZE(ierr)
      end
