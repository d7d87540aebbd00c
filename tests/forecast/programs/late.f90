! SPDX-License-Identifier: BSD-3-Clause
! As late.c: rank 1 rests for 50 ms before it receives the 4 MiB that rank 0 sends.
program late
#if USE_F08
  use mpi_f08
#else
  use mpi
#endif
  use iso_c_binding
  implicit none
  interface
    function usleep(us) bind(c)
      import :: c_int
      integer(c_int), value :: us
      integer(c_int) :: usleep
    end function
  end interface
  integer, parameter :: bytes = 4 * 1024 * 1024
  character, allocatable :: data(:)
  integer :: rank, i, error
  integer(c_int) :: ignored
  allocate (data(bytes))
  data = 'a'
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  do i = 1, 5
    call MPI_Barrier(MPI_COMM_WORLD, error)
    if (rank == 0) then
      call give()
      ignored = usleep(50000_c_int)
    else
      ignored = usleep(50000_c_int)
      call take()
    end if
  end do
  call MPI_Finalize(error)
contains
  subroutine give()
    call MPI_Send(data, bytes, MPI_CHARACTER, 1, 1, MPI_COMM_WORLD, error)
  end subroutine
  subroutine take()
    call MPI_Recv(data, bytes, MPI_CHARACTER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end subroutine
end program
