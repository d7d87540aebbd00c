! SPDX-License-Identifier: BSD-3-Clause
!
! Attributes of communicators and a handler of errors, with functions of Fortran, which are given the
! program's handles; they go on after a move.
!
!     attributes FILE       until FILE exists
!
! With the calls of MPI-2 and the module mpi; with -DWITH_F08 the module mpi_f08, with -DWITH_MPI_1 the
! calls of MPI-1, whose attributes are default integers.
#ifdef WITH_F08
#define BINDING mpi_f08
#define COMM type(MPI_Comm)
#define HANDLER type(MPI_Errhandler)
#else
#define BINDING mpi
#define COMM integer
#define HANDLER integer
#endif
#ifdef WITH_MPI_1
#define VALUE integer
#define CREATE_KEYVAL MPI_Keyval_create
#define FREE_KEYVAL MPI_Keyval_free
#define SET_ATTR MPI_Attr_put
#define GET_ATTR MPI_Attr_get
#define DELETE_ATTR MPI_Attr_delete
#else
#define VALUE integer(MPI_ADDRESS_KIND)
#define CREATE_KEYVAL MPI_Comm_create_keyval
#define FREE_KEYVAL MPI_Comm_free_keyval
#define SET_ATTR MPI_Comm_set_attr
#define GET_ATTR MPI_Comm_get_attr
#define DELETE_ATTR MPI_Comm_delete_attr
#endif
#ifdef WITH_HANDLERS_OF_MPI_1
#define CREATE_HANDLER MPI_Errhandler_create
#define SET_HANDLER MPI_Errhandler_set
#define GET_HANDLER MPI_Errhandler_get
#else
#define CREATE_HANDLER MPI_Comm_create_errhandler
#define SET_HANDLER MPI_Comm_set_errhandler
#define GET_HANDLER MPI_Comm_get_errhandler
#endif
module functions
    use BINDING
    implicit none
    integer, parameter :: given = -5
    integer :: copied = 0, removed = 0, failed = 0
    COMM :: of_copy, of_removal, of_error
contains
    subroutine copy(comm, key, extra, value, new, flag, code)
        COMM :: comm
        integer :: key, code
        VALUE :: extra, value, new
        logical :: flag
        if (key == MPI_KEYVAL_INVALID .or. extra /= 77) error stop 'extra state'
        copied = copied + 1
        of_copy = comm
        new = value + 1
        flag = .true.
        code = MPI_SUCCESS
    end subroutine

    subroutine remove(comm, key, value, extra, code)
        COMM :: comm
        integer :: key, code
        VALUE :: extra, value
        if (key == MPI_KEYVAL_INVALID .or. extra /= 77) error stop 'removed with another state'
        if (value /= given .and. value /= given + 1) error stop 'another value is removed'
        removed = removed + 1
        of_removal = comm
        code = MPI_SUCCESS
    end subroutine

    subroutine on_error(comm, problem)
        COMM :: comm
        integer :: problem
        if (problem == MPI_SUCCESS) error stop 'no error'
        failed = failed + 1
        of_error = comm
    end subroutine
end module

program attributes
    use BINDING
    use zcm
    use functions
    implicit none
    integer, target :: step
    integer :: key, rank, code
    HANDLER :: handler, found
    COMM :: ring, second
    VALUE :: extra, value
    logical :: there, over
    character(len=4096) :: until

    call MPI_Init(code)
    if (zcm_init() /= 0) error stop 'cannot start'
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
    call get_command_argument(1, until)
    step = 0
    if (zcm_register('step', step) /= 0) error stop 'step'
    extra = 77
    call CREATE_KEYVAL(copy, remove, key, extra, code)
    call CREATE_HANDLER(on_error, handler, code)
    call MPI_Comm_dup(MPI_COMM_WORLD, ring, code)
    call GET_ATTR(MPI_COMM_WORLD, MPI_TAG_UB, value, there, code)
    if (.not. there .or. value < 32767) error stop 'tag'
    call GET_ATTR(ring, key, value, there, code)
    if (there) error stop 'an attribute that was not set'
    value = given
    call SET_ATTR(ring, key, value, code)
    call SET_HANDLER(ring, handler, code)
    call GET_HANDLER(ring, found, code)
    if (found /= handler) error stop 'another handler'

    over = .false.
    do while (.not. over)
        if (zcm_safe_point() /= 0) error stop 'safe point'
        step = step + 1
        call GET_ATTR(ring, key, value, there, code)
        if (.not. there .or. value /= given) error stop 'the attribute is not there'
        copied = 0
        removed = 0
        call MPI_Comm_dup(ring, second, code)
        if (copied /= 1 .or. of_copy /= ring) error stop 'not copied'
        call GET_ATTR(second, key, value, there, code)
        if (.not. there .or. value /= given + 1) error stop 'another copy'
        call MPI_Comm_free(second, code)
        if (removed /= 1 .or. of_removal == ring) error stop 'not removed'
        failed = 0
        call MPI_Send(step, 1, MPI_INTEGER, 1000, 0, ring, code)
        if (failed /= 1 .or. of_error /= ring) error stop 'no error, or of another communicator'
        if (rank == 0) inquire (file=until, exist=over)
        call MPI_Bcast(over, 1, MPI_LOGICAL, 0, MPI_COMM_WORLD, code)
    end do
    call DELETE_ATTR(ring, key, code)
    if (removed /= 2 .or. of_removal /= ring) error stop 'not deleted'
    call FREE_KEYVAL(key, code)
    if (key /= MPI_KEYVAL_INVALID) error stop 'the key is not freed'
    if (rank == 0) print '(a)', 'all right'
    code = zcm_finalize()
    call MPI_Finalize(code)
end program
