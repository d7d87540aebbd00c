! SPDX-License-Identifier: BSD-3-Clause
! A large message that is late, through the Fortran 2008 module.
program late_08
  use mpi_f08
  implicit none
  integer, parameter :: n = 4000000
  integer :: rank, i, wrong
  integer, allocatable :: buffer(:)
  type(MPI_Status) :: status

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  allocate (buffer(n))
  if (rank == 0) then
    do i = 1, n
      buffer(i) = i
    end do
    call MPI_Send(buffer, n, MPI_INTEGER, 1, 5, MPI_COMM_WORLD)
  else
    buffer = 0
    ! Only when it is there: then it is late, however busy the host is.
    call MPI_Probe(0, 5, MPI_COMM_WORLD, status)
    call MPI_Recv(buffer, n, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, status)
    wrong = 0
    do i = 1, n
      if (buffer(i) /= i) wrong = wrong + 1
    end do
    if (wrong == 0 .and. status%MPI_SOURCE == 0) then
      print *, 'No Errors'
    else
      print *, 'wrong data'
    end if
  end if
  call MPI_Finalize()
end program late_08
