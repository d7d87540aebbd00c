! SPDX-License-Identifier: BSD-3-Clause
! A large message that is late, and a reduction of Fortran's own types, through the module mpi.
program late_90
  use mpi
  implicit none
  integer, parameter :: n = 1000000
  integer :: rank, ranks, i, total, ierr, status(MPI_STATUS_SIZE)
  double precision, allocatable :: buffer(:)
  logical :: all_right, right
  double precision :: most

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate (buffer(n))
  right = .true.
  if (rank == 0) then
    do i = 1, n
      buffer(i) = i
    end do
    call MPI_Send(buffer, n, MPI_DOUBLE_PRECISION, 1, 7, MPI_COMM_WORLD, ierr)
  else if (rank == 1) then
    buffer = 0
    ! Only when it is there: then it is late, however busy the host is.
    call MPI_Probe(0, 7, MPI_COMM_WORLD, status, ierr)
    call MPI_Recv(buffer, n, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, status, ierr)
    right = status(MPI_SOURCE) == 0
    do i = 1, n
      right = right .and. buffer(i) == i
    end do
  end if

  call MPI_Allreduce(rank + 1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  right = right .and. total == ranks * (ranks + 1) / 2
  call MPI_Allreduce(dble(rank), most, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
  right = right .and. most == ranks - 1
  call MPI_Allreduce(right, all_right, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  if (rank == 0) print *, merge('No Errors ', 'wrong data', all_right)
  call MPI_Finalize(ierr)
end program late_90
