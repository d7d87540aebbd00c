! SPDX-License-Identifier: BSD-3-Clause
!
! Heat in a rod, by a Fortran program whose ranks can move to other hosts while it runs:
!
!     ZC_MIGRATE=1 mpiexec -n 4 ./heat1d 1000000
!     zcctl move --rank 1,3 --to another-host
!
! Each rank has a part of the rod, which is longer the higher its number is: an array whose size the
! program knows before it registers it from what its predecessor had. At the end rank 0 computes the
! whole rod alone and compares bit by bit.
!
!     heat1d [STEPS [FILE]]      ends earlier once FILE exists
program heat1d
    use, intrinsic :: iso_fortran_env, only: real64, int64
    use mpi
    use zcm
    implicit none

    integer, parameter :: to_left = 1, to_right = 2, result = 3
    real(real64), allocatable, target :: rod(:), next(:)
    integer(int64), target :: step
    integer :: rank, ranks, cells, first, ierr, left, right
    integer(int64) :: steps
    character(len=4096) :: word
    character(len=:), allocatable :: until

    call MPI_Init(ierr)
    if (zcm_init() /= 0) call fail('cannot start')
    call MPI_Comm_rank(zcm_world(), rank, ierr)
    call MPI_Comm_size(zcm_world(), ranks, ierr)
    steps = 2000
    call get_command_argument(1, word)
    if (word /= '') read (word, *) steps
    call get_command_argument(2, word)
    until = trim(word)

    left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    right = merge(rank + 1, MPI_PROC_NULL, rank + 1 < ranks)
    first = offset(rank)
    cells = offset(rank + 1) - first
    if (zcm_resumed() /= 0) cells = int(zcm_saved_count('rod')) - 2
    allocate (rod(0:cells + 1), next(0:cells + 1))
    step = 0
    if (zcm_register('rod', rod) /= 0 .or. zcm_register('step', step) /= 0) &
        call fail('cannot register')
    ierr = zcm_total_safe_points(merge(steps, 0_int64, until == ''))
    if (zcm_resumed() == 0) call begin(rod, first)

    do while (step < steps)
        if (zcm_safe_point() /= 0) call fail('cannot go on')
        call MPI_Sendrecv(rod(1), 1, MPI_DOUBLE_PRECISION, left, to_left, rod(cells + 1), 1, &
                          MPI_DOUBLE_PRECISION, right, to_left, zcm_world(), MPI_STATUS_IGNORE, ierr)
        call MPI_Sendrecv(rod(cells), 1, MPI_DOUBLE_PRECISION, right, to_right, rod(0), 1, &
                          MPI_DOUBLE_PRECISION, left, to_right, zcm_world(), MPI_STATUS_IGNORE, ierr)
        call advance(rod, next)
        step = step + 1
        if (is_over()) exit
    end do
    call compare_with_serial
    if (zcm_finalize() /= 0) call fail('cannot finish')
    call MPI_Finalize(ierr)

contains

    ! Cells before those of a rank.
    pure integer function offset(of_rank)
        integer, intent(in) :: of_rank
        offset = 1000 * of_rank + 50 * of_rank * of_rank
    end function

    subroutine begin(of, before)
        real(real64), intent(out) :: of(0:)
        integer, intent(in) :: before
        integer :: i
        of = 0
        do i = 1, ubound(of, 1) - 1
            of(i) = real(mod((before + i) * 31, 1009), real64) / 1009
        end do
    end subroutine

    subroutine advance(of, scratch)
        real(real64), intent(inout) :: of(0:), scratch(0:)
        integer :: i, n
        n = ubound(of, 1) - 1
        do i = 1, n
            scratch(i) = 0.25_real64 * of(i - 1) + 0.5_real64 * of(i) + 0.25_real64 * of(i + 1)
        end do
        of(1:n) = scratch(1:n)
    end subroutine

    ! Rank 0 has seen the file; all hear of it in the same step.
    logical function is_over()
        is_over = .false.
        if (until == '' .or. mod(step, 16_int64) /= 0) return
        if (rank == 0) inquire (file=until, exist=is_over)
        call MPI_Bcast(is_over, 1, MPI_LOGICAL, 0, zcm_world(), ierr)
    end function

    subroutine compare_with_serial
        real(real64), allocatable :: whole(:), scratch(:), part(:)
        integer(int64) :: i
        integer :: peer, n, wrong
        if (rank /= 0) then
            call MPI_Send(rod(1), cells, MPI_DOUBLE_PRECISION, 0, result, zcm_world(), ierr)
            return
        end if
        allocate (whole(0:offset(ranks) + 1), scratch(0:offset(ranks) + 1))
        call begin(whole, 0)
        do i = 1, step
            call advance(whole, scratch)
        end do
        wrong = count(rod(1:cells) /= whole(1:cells))
        do peer = 1, ranks - 1
            n = offset(peer + 1) - offset(peer)
            allocate (part(n))
            call MPI_Recv(part, n, MPI_DOUBLE_PRECISION, peer, result, zcm_world(), &
                          MPI_STATUS_IGNORE, ierr)
            wrong = wrong + count(part /= whole(offset(peer) + 1:offset(peer) + n))
            deallocate (part)
        end do
        print '(i0, a, i0, 3a, i0, a)', step, ' steps on ', ranks, ' ranks: ', &
            trim(merge('bit-identical to the serial solution', 'WRONG                               ', &
                       wrong == 0)), ' (', wrong, ' values differ)'
        if (wrong /= 0) call fail('wrong')
    end subroutine

    subroutine fail(what)
        character(len=*), intent(in) :: what
        write (0, '(2a)') 'heat1d: ', what
        error stop 1
    end subroutine
end program
