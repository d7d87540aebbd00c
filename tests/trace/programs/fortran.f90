! SPDX-License-Identifier: BSD-3-Clause
! The same rows from Fortran, through mpif.h's or mpi_f08's functions.
program fortran
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: rank, nr, next, last, ierr, i, u
  integer, target :: inbuf(64), outbuf(64)
  integer :: counts(64), displs(64)
#ifdef F08
  type(MPI_Request) :: requests(3)
  type(MPI_Status) :: status
  type(MPI_Comm) :: half
#else
  integer :: requests(3), half
  integer :: status(MPI_STATUS_SIZE)
#endif
  character(len=4096) :: path, name
  character(len=64) :: all_ranks

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nr, ierr)
  call get_environment_variable("EXPECT_DIR", path)
  write (name, '(a,a,i0)') trim(path), "/expected.", rank
  open (newunit=u, file=trim(name), action="write")
  all_ranks = "0"
  do i = 1, nr - 1
    write (all_ranks, '(a,a,i0)') trim(all_ranks), "+", i
  end do
  next = mod(rank + 1, nr)
  last = mod(rank + nr - 1, nr)

  call MPI_Sendrecv(outbuf, 5, MPI_INTEGER, next, 1, inbuf, 64, MPI_INTEGER, last, 1, &
                    MPI_COMM_WORLD, status, ierr)
  call expect(last, 1, 20, loc(inbuf(1)), "p2p", -1)
  call MPI_Irecv(inbuf(3), 8, MPI_INTEGER, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, requests(1), ierr)
  call expect(last, 2, 8, loc(inbuf(3)), "p2p", -1)
  call MPI_Irecv(inbuf(20), 8, MPI_INTEGER, last, MPI_ANY_TAG, MPI_COMM_WORLD, requests(2), ierr)
  call expect(last, 3, 12, loc(inbuf(20)), "p2p", -1)
  call MPI_Isend(outbuf, 2, MPI_INTEGER, next, 2, MPI_COMM_WORLD, requests(3), ierr)
  call MPI_Send(outbuf, 3, MPI_INTEGER, next, 3, MPI_COMM_WORLD, ierr)
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, ierr)
  call MPI_Send(outbuf, 1, MPI_INTEGER, next, 4, MPI_COMM_WORLD, ierr)
  call MPI_Recv(inbuf, 1, MPI_INTEGER, last, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call expect(last, 4, 4, loc(inbuf(1)), "p2p", -1)

  call MPI_Bcast(inbuf, 6, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  if (rank /= 0) call expect(0, -1, 24, loc(inbuf(1)), "bcast", 0)
  call MPI_Allreduce(MPI_IN_PLACE, inbuf, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call expect(0, -1, 8, loc(inbuf(1)), "allreduce", 1)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  do i = 1, nr
    counts(i) = 2
    displs(i) = 3*(i - 1)
  end do
  call MPI_Allgatherv(outbuf, 2, MPI_INTEGER, inbuf, counts, displs, MPI_INTEGER, &
                      MPI_COMM_WORLD, ierr)
  do i = 1, nr
    call expect(i - 1, -1, 8, loc(inbuf(3*(i - 1) + 1)), "allgatherv", 3)
  end do
  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, half, ierr)
  call MPI_Recv_init(inbuf, 4, MPI_INTEGER, last, 9, half, requests(1), ierr)
  call MPI_Start(requests(1), ierr)
  call MPI_Send(outbuf, 4, MPI_INTEGER, next, 9, half, ierr)
  call MPI_Wait(requests(1), status, ierr)
  call expect(last, 9, 16, loc(inbuf(1)), "p2p", -1)
  call MPI_Request_free(requests(1), ierr)
  call MPI_Comm_free(half, ierr)
  close (u)
  call MPI_Finalize(ierr)

contains

  subroutine expect(source, tag, bytes, address, kind, collective)
    integer, intent(in) :: source, tag, bytes, collective
    integer(8), intent(in) :: address
    character(len=*), intent(in) :: kind
    character(len=16) :: hex
    integer :: n
    write (hex, '(z16)') address
    hex = adjustl(hex)
    do n = 1, len_trim(hex)
      if (hex(n:n) >= 'A' .and. hex(n:n) <= 'F') hex(n:n) = achar(iachar(hex(n:n)) + 32)
    end do
    write (u, '(a,",",i0,",",i0,",",i0,",",a,",",a,",",i0)') trim(all_ranks), source, tag, bytes, &
      trim(hex), trim(kind), collective
  end subroutine
end program
