! SPDX-License-Identifier: BSD-3-Clause
!
! A program of the old kind, with mpif.h and a common block, that writes a line per iteration to a
! unit of its own, and one of 64 to standard output, and leaves both in their buffers when it moves.
!
!     units FILE       until FILE exists; rank N writes to FILE.N
program units
    use zcm
    implicit none
    include 'mpif.h'

    integer, parameter :: cells = 500
    integer :: step
    double precision :: field(cells)
    common /state/ field, step
    target :: field, step
    integer :: rank, ranks, from, i, ierr, status(MPI_STATUS_SIZE)
    double precision :: edge, total
    character(len=4096) :: until, path
    logical :: over

    call MPI_Init(ierr)
    call need(zcm_init(), 'zcm_init')
    call MPI_Comm_rank(zcm_world(), rank, ierr)
    call MPI_Comm_size(zcm_world(), ranks, ierr)
    call get_command_argument(1, until)
    write (path, '(2a, i0)') trim(until), '.', rank
    if (zcm_resumed() /= 0) then
        open (20, file=path, position='append', status='old')
    else
        open (20, file=path, status='replace')
    end if
    step = 0
    field = rank
    call need(zcm_register('field', field), 'field')
    call need(zcm_register('step', step), 'step')

    from = mod(rank + ranks - 1, ranks)
    over = .false.
    do while (.not. over)
        call need(zcm_safe_point(), 'safe point')
        do i = 1, cells
            if (field(i) /= mod(rank + ranks * 1000000 - step, ranks) + i * step) error stop 'field'
        end do
        write (20, '(i0)') step
        if (mod(step, 64) == 0) write (*, '(a, i0, a, i0)') 'line ', rank, ' ', step
        ! So what a predecessor had kept to itself would come later.
        if (zcm_resumed() /= 0 .and. mod(step, 7) == 0) flush (20)
        do i = 1, cells
            field(i) = field(i) - i * step
        end do
        edge = field(1)
        call MPI_Sendrecv(edge, 1, MPI_DOUBLE_PRECISION, mod(rank + 1, ranks), 1, field, 1, &
                          MPI_DOUBLE_PRECISION, from, 1, zcm_world(), status, ierr)
        step = step + 1
        field = field(1)
        do i = 1, cells
            field(i) = field(i) + i * step
        end do
        call pause
        if (rank == 0) inquire (file=until, exist=over)
        call MPI_Bcast(over, 1, MPI_LOGICAL, 0, zcm_world(), ierr)
    end do
    call MPI_Allreduce(field(1) - step, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, zcm_world(), ierr)
    if (total /= ranks * (ranks - 1) / 2) error stop 'total'
    write (20, '(a)') 'end'
    close (20)
    if (rank == 0) print '(a)', 'all right'
    call need(zcm_finalize(), 'zcm_finalize')
    call MPI_Finalize(ierr)

contains

    subroutine need(code, what)
        integer, intent(in) :: code
        character(len=*), intent(in) :: what
        if (code == 0) return
        write (0, '(4a)') what, ': ', zcm_strerror(code)
        error stop 1
    end subroutine

    ! A thousandth of a second: each iteration is a line.
    subroutine pause
        double precision :: begun
        begun = MPI_Wtime()
        do while (MPI_Wtime() < begun + 1d-3)
        end do
    end subroutine
end program
