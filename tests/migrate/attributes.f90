! SPDX-License-Identifier: BSD-3-Clause
!
! Attributes of communicators and a handler of errors, with functions of Fortran, which are given the
! program's handles; they go on after a move.
!
!     attributes FILE       until FILE exists
module functions
    use mpi
    implicit none
    integer :: copied = 0, removed = 0, failed = 0, of_copy = 0, of_removal = 0, of_error = 0
contains
    subroutine copy(comm, key, extra, value, new, flag, code)
        integer :: comm, key, code
        integer(MPI_ADDRESS_KIND) :: extra, value, new
        logical :: flag
        if (key == MPI_KEYVAL_INVALID .or. extra /= 77) error stop 'extra state'
        copied = copied + 1
        of_copy = comm
        new = value + 1
        flag = .true.
        code = MPI_SUCCESS
    end subroutine

    subroutine remove(comm, key, value, extra, code)
        integer :: comm, key, code
        integer(MPI_ADDRESS_KIND) :: extra, value
        if (key == MPI_KEYVAL_INVALID .or. extra /= 77 .or. value < 5) error stop 'removed'
        removed = removed + 1
        of_removal = comm
        code = MPI_SUCCESS
    end subroutine

    subroutine on_error(comm, problem)
        integer :: comm, problem
        if (problem == MPI_SUCCESS) error stop 'no error'
        failed = failed + 1
        of_error = comm
    end subroutine
end module

program attributes
    use mpi
    use zcm
    use functions
    implicit none
    integer, target :: step
    integer :: key, handler, ring, second, rank, code
    integer(MPI_ADDRESS_KIND) :: extra, value
    logical :: there, over
    character(len=4096) :: until

    call MPI_Init(code)
    if (zcm_init() /= 0) error stop 'cannot start'
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
    call get_command_argument(1, until)
    step = 0
    if (zcm_register('step', step) /= 0) error stop 'step'
    extra = 77
    call MPI_Comm_create_keyval(copy, remove, key, extra, code)
    call MPI_Comm_create_errhandler(on_error, handler, code)
    call MPI_Comm_dup(MPI_COMM_WORLD, ring, code)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, there, code)
    if (.not. there .or. value < 32767) error stop 'tag'
    call MPI_Comm_get_attr(ring, key, value, there, code)
    if (there) error stop 'an attribute that was not set'
    value = 5
    call MPI_Comm_set_attr(ring, key, value, code)
    call MPI_Comm_set_errhandler(ring, handler, code)

    over = .false.
    do while (.not. over)
        if (zcm_safe_point() /= 0) error stop 'safe point'
        step = step + 1
        call MPI_Comm_get_attr(ring, key, value, there, code)
        if (.not. there .or. value /= 5) error stop 'the attribute is not there'
        copied = 0
        removed = 0
        call MPI_Comm_dup(ring, second, code)
        if (copied /= 1 .or. of_copy /= ring) error stop 'not copied'
        call MPI_Comm_get_attr(second, key, value, there, code)
        if (.not. there .or. value /= 6) error stop 'another copy'
        call MPI_Comm_free(second, code)
        if (removed /= 1 .or. of_removal == ring) error stop 'not removed'
        failed = 0
        call MPI_Send(step, 1, MPI_INTEGER, 1000, 0, ring, code)
        if (failed /= 1 .or. of_error /= ring) error stop 'no error, or of another communicator'
        if (rank == 0) inquire (file=until, exist=over)
        call MPI_Bcast(over, 1, MPI_LOGICAL, 0, MPI_COMM_WORLD, code)
    end do
    call MPI_Comm_delete_attr(ring, key, code)
    if (removed /= 2 .or. of_removal /= ring) error stop 'not deleted'
    if (rank == 0) print '(a)', 'all right'
    code = zcm_finalize()
    call MPI_Finalize(code)
end program
