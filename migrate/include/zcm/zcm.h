/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCM_ZCM_H_INCLUDED
#define ZCM_ZCM_H_INCLUDED

/**
 * libzcm - ranks of an MPI program move to other hosts while the job goes on
 *
 *     MPI_Init(&argc, &argv);
 *     zcm_init(&argc, &argv);                      // ZC_MIGRATE=1 switches it on
 *     zcm_register("t", t, n, MPI_DOUBLE);         // resumed: filled here
 *     zcm_register("step", &step, 1, MPI_INT);
 *     if (!zcm_resumed()) fill(t);
 *     for (; step < steps; step++) {
 *         zcm_safe_point();                        // may not return: this process moved away
 *         ... exchange over MPI_COMM_WORLD, compute ...
 *     }
 *     zcm_finalize();
 *     MPI_Finalize();
 *
 * A *safe point* is a place in the outermost loop where no request is active, and
 * the registered data is all that has to be kept. All ranks pass the same number of
 * safe points. Messages do not cross them: what a rank sends before its n-th safe point
 * is received before the n-th safe point of the receiver.
 *
 * A *resumed* process (one that takes over a rank, or the rank of a restarted
 * job) runs main() from its beginning. Its registered data is filled by
 * zcm_register(); it goes on from the point where its predecessor stopped when
 * its first zcm_safe_point() returns. Until then ranks that did not move are waiting in the
 * same safe point: what its MPI calls return is what they returned in the predecessor.
 *
 * Switched on, MPI_COMM_WORLD is the job, in libraries too, and communicators, groups and
 * persistent requests go on after a move. zcm(7) has more, and what they do not take along.
 *
 * Errors: 0 or a negative errno. Whoever finds the cause prints it once on the
 * standard error, with the name of the culprit; zcm_strerror() has the general text.
 *
 * Threads: all calls by the thread that initialised MPI; MPI_THREAD_SINGLE is
 * enough. Switched on, the library has one thread of its own in rank 0 (requests)
 * and one in every rank while a checkpoint is written or a move is completed; none calls MPI.
 */

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
#define ZCM_NOEXCEPT noexcept
extern "C" {
#else
#define ZCM_NOEXCEPT
#endif

#define ZCM_PUBLIC __attribute__((visibility("default")))

/**
 * zcm_init - this program has safe points; once, after MPI_Init
 * @argc, @argv: those of main(); may be NULL
 *
 * Collective over MPI_COMM_WORLD. With ZC_MIGRATE unset nothing is opened,
 * spawned or listened on. With ZC_MIGRATE=1 MPI_Init() or MPI_Init_thread() has started the job,
 * and *did not return* in a process started by mpiexec: each of these gets a
 * successor on its host that has a world of its own, and ends. (A process can
 * only leave a job if its world ends with it.) MPI_Init() returns in the successors.
 * No effect in a process that the program has spawned.
 *
 * Return: 0; -EALREADY called before; -EINVAL MPI not initialised, a bad ZC_MIGRATE_*
 * variable, or the program is linked with the MPI library before libzcm; -EIO the processes could
 * not be linked up.
 */
ZCM_PUBLIC int zcm_init(int *argc, char ***argv) ZCM_NOEXCEPT;

/**
 * zcm_register - this memory is part of the state of the rank
 * @name:  unique within the process, 1 to 127 characters, no '/'; not one that begins with "zcm:"
 * @addr:  the caller's until zcm_unregister(); need not be aligned
 * @count: elements; with 0 there is no memory, and @addr may be NULL
 * @type:  a predefined type of C, C++ or Fortran, or one derived from those (zcm(3), TYPES); it may
 *         be freed afterwards
 *
 * Of a derived type what is saved is its basic elements; all memory from the first to the last of
 * them is taken by the name.
 *
 * In a resumed process it fills the memory with the saved values before it
 * returns. All names of the predecessor must be registered before the first safe
 * point. Local.
 *
 * Return: 0; -EINVAL bad argument; -EEXIST name taken or memory overlapping that of another
 * name; -ENOTSUP a type that cannot be saved; resumed only: -ENOENT nothing saved by that
 * name, -EBADMSG count or type differ or the data is damaged, -EPIPE the predecessor is gone.
 */
ZCM_PUBLIC int zcm_register(const char *name, void *addr, size_t count,
                            MPI_Datatype type) ZCM_NOEXCEPT;

/**
 * zcm_reregister - the data moved, or has another length, as after realloc
 *
 * Return: as zcm_register(), -ENOENT no such name. On failure the old entry stays.
 */
ZCM_PUBLIC int zcm_reregister(const char *name, void *addr, size_t count) ZCM_NOEXCEPT;

/** zcm_unregister - to be called before the memory is freed. Return: 0 or -ENOENT. */
ZCM_PUBLIC int zcm_unregister(const char *name) ZCM_NOEXCEPT;

/**
 * zcm_on_save - make the registered data current where it is about to be taken
 * @fn:  called inside zcm_safe_point(), before anything is saved: in the processes that leave in
 *       a move, and in all in a checkpoint. It may change, register, reregister and unregister
 *       data; it must not communicate, as other ranks need not be in theirs. NULL: none
 * @arg: handed to it
 *
 * So data that is not kept in arrays (lists, trees, objects) is packed only when it is needed.
 * @fn returns 0; another value refuses the request, which is answered with it and the rank, and
 * the job goes on. So does one that takes longer than ZC_MIGRATE_CALLBACK (60 s): it cannot be
 * interrupted, and the rank leaves the safe point when it returns, the others do at once. A request
 * can still be refused after @fn was called. Return: 0.
 */
typedef int (*zcm_save_fn)(void *arg);
ZCM_PUBLIC int zcm_on_save(zcm_save_fn fn, void *arg) ZCM_NOEXCEPT;

/**
 * zcm_saved_count - how many elements the predecessor, or the checkpoint, has of a name
 *
 * In a resumed process, before its first safe point: to allocate arrays whose size changes
 * before they are registered. Local.
 *
 * Return: elements; -ENOENT nothing saved by that name, or not resumed; -EINVAL bad argument;
 * -EBADMSG the checkpoint is damaged.
 */
ZCM_PUBLIC long long zcm_saved_count(const char *name) ZCM_NOEXCEPT;

/**
 * zcm_saved_name - the names there are, in order of the alphabet: 0, 1 and so on
 *
 * Return: owned by the library, valid until the first safe point; NULL beyond the last, or if
 * this process is not resumed, or has come to a safe point.
 */
ZCM_PUBLIC const char *zcm_saved_name(size_t index) ZCM_NOEXCEPT;

/**
 * zcm_on_rebuild - functions that release and rebuild what cannot move: windows, files
 * @release: called in every process, leavers too, where all have met for a move, inside
 *           zcm_safe_point(): close windows and files. May communicate. May be NULL.
 * @rebuild: called in every process after the move, or if it was not made, inside
 *           zcm_safe_point(): make them again, and whatever else cannot be saved. May
 *           communicate. May be NULL.
 * @arg:     handed to both, after MPI_COMM_WORLD
 *
 * Communicators and persistent requests need neither, but may be freed and made by them.
 * A @release that takes longer than ZC_MIGRATE_CALLBACK refuses the move, as with zcm_on_save();
 * for a @rebuild all wait. At a fresh start nothing is called; in a resumed process @rebuild is, by its first
 * zcm_safe_point(). Return: 0.
 */
typedef void (*zcm_world_fn)(MPI_Comm world, void *arg);
ZCM_PUBLIC int zcm_on_rebuild(zcm_world_fn release, zcm_world_fn rebuild, void *arg) ZCM_NOEXCEPT;

/**
 * zcm_safe_point - the state may be taken here; see above for what that means
 *
 * Costs one load while nobody has asked for anything. In a process whose rank has
 * moved away it does not return: the process ends with status 0, without exit handlers.
 *
 * Return: 0, also after a refused move (reported to whoever asked); -EINVAL before
 * zcm_init(); -EPIPE resumed, but the predecessor gave up.
 */
ZCM_PUBLIC int zcm_safe_point(void) ZCM_NOEXCEPT;

/**
 * zcm_total_safe_points - how many safe points the whole run will have, where that is known
 *
 * Agents (zcmd) weigh what a move costs against what remains of the run. Local; may be
 * called again when it changes; 0: not known. Return: 0; -EINVAL negative.
 */
ZCM_PUBLIC int zcm_total_safe_points(long long total) ZCM_NOEXCEPT;

/** zcm_world - MPI_COMM_WORLD, which is the job */
ZCM_PUBLIC MPI_Comm zcm_world(void) ZCM_NOEXCEPT;

/** zcm_resumed - 1 in a process that took over a rank or was restarted, else 0 */
ZCM_PUBLIC int zcm_resumed(void) ZCM_NOEXCEPT;

/**
 * zcm_checkpoint - save the job's state to disk at the next safe points
 *
 * Local, by all ranks or by rank 0 alone: only its call counts. The state is taken at the
 * first safe point that all ranks can reach together. Each rank copies it to memory, and writing
 * goes on in the background; or it is written there where memory is short (ZC_MIGRATE_SAVING). A
 * failure is printed.
 *
 * Return: 0; -ENOTSUP without ZC_MIGRATE=1; -EBUSY a request is under way.
 */
ZCM_PUBLIC int zcm_checkpoint(void) ZCM_NOEXCEPT;

/**
 * zcm_finalize - the last call, before MPI_Finalize
 *
 * Collective. Requests from now on are refused; a checkpoint being written is
 * finished. MPI_Finalize() makes this call if the program does not.
 *
 * Return: 0; -EINVAL not initialised; -EIO a checkpoint could not be finished.
 */
ZCM_PUBLIC int zcm_finalize(void) ZCM_NOEXCEPT;

/** zcm_strerror - the general meaning of a code of this library; never NULL, not to be freed */
ZCM_PUBLIC const char *zcm_strerror(int code) ZCM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
