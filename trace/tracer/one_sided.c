/* SPDX-License-Identifier: BSD-3-Clause */

/* One-sided communication: counted, not recorded. No receive says when its data was needed. */

#include "datatype.h"
#include "unrecorded.h"

/* Wrapper of a function that moves @count of @type, to or from @target. */
#define MOVES(name, what, count, type, parameters, arguments)                                      \
    int MPI_##name parameters                                                                      \
    {                                                                                              \
        void *const caller = ZCT_CALLER;                                                           \
        const int64_t begin_ns = zct_unrecorded_begins();                                          \
        const int code = REAL(name) arguments;                                                     \
        if (code == MPI_SUCCESS && target >= 0 && begin_ns)                                        \
            zct_unrecorded_count(what, caller, zct_bytes(count, type), begin_ns);                  \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(name)

/* The functions for counts of a type. */
#define ONE_SIDED(suffix, count_t)                                                                 \
    MOVES(Put##suffix, ZCT_UNRECORDED_PUT, n, type,                                                \
          (const void *from, count_t n, MPI_Datatype type, int target, MPI_Aint at,                \
           count_t target_n, MPI_Datatype target_type, MPI_Win win),                               \
          (from, n, type, target, at, target_n, target_type, win))                                 \
    MOVES(Rput##suffix, ZCT_UNRECORDED_PUT, n, type,                                               \
          (const void *from, count_t n, MPI_Datatype type, int target, MPI_Aint at,                \
           count_t target_n, MPI_Datatype target_type, MPI_Win win, MPI_Request *request),         \
          (from, n, type, target, at, target_n, target_type, win, request))                        \
    MOVES(Get##suffix, ZCT_UNRECORDED_GET, n, type,                                                \
          (void *to, count_t n, MPI_Datatype type, int target, MPI_Aint at, count_t target_n,      \
           MPI_Datatype target_type, MPI_Win win),                                                 \
          (to, n, type, target, at, target_n, target_type, win))                                   \
    MOVES(Rget##suffix, ZCT_UNRECORDED_GET, n, type,                                               \
          (void *to, count_t n, MPI_Datatype type, int target, MPI_Aint at, count_t target_n,      \
           MPI_Datatype target_type, MPI_Win win, MPI_Request *request),                           \
          (to, n, type, target, at, target_n, target_type, win, request))                          \
    MOVES(Accumulate##suffix, ZCT_UNRECORDED_ACCUMULATE, n, type,                                  \
          (const void *from, count_t n, MPI_Datatype type, int target, MPI_Aint at,                \
           count_t target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win),                    \
          (from, n, type, target, at, target_n, target_type, op, win))                             \
    MOVES(Raccumulate##suffix, ZCT_UNRECORDED_ACCUMULATE, n, type,                                 \
          (const void *from, count_t n, MPI_Datatype type, int target, MPI_Aint at,                \
           count_t target_n, MPI_Datatype target_type, MPI_Op op, MPI_Win win,                     \
           MPI_Request *request),                                                                  \
          (from, n, type, target, at, target_n, target_type, op, win, request))                    \
    MOVES(Get_accumulate##suffix, ZCT_UNRECORDED_GET_ACCUMULATE, to_n, to_type,                    \
          (const void *from, count_t n, MPI_Datatype type, void *to, count_t to_n,                 \
           MPI_Datatype to_type, int target, MPI_Aint at, count_t target_n,                        \
           MPI_Datatype target_type, MPI_Op op, MPI_Win win),                                      \
          (from, n, type, to, to_n, to_type, target, at, target_n, target_type, op, win))          \
    MOVES(Rget_accumulate##suffix, ZCT_UNRECORDED_GET_ACCUMULATE, to_n, to_type,                   \
          (const void *from, count_t n, MPI_Datatype type, void *to, count_t to_n,                 \
           MPI_Datatype to_type, int target, MPI_Aint at, count_t target_n,                        \
           MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request),                \
          (from, n, type, to, to_n, to_type, target, at, target_n, target_type, op, win, request))

ONE_SIDED(, int)
#if ZCT_LARGE_COUNT
ONE_SIDED(_c, MPI_Count)
#endif

MOVES(Fetch_and_op, ZCT_UNRECORDED_FETCH_AND_OP, 1, type,
      (const void *from, void *to, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op,
       MPI_Win win),
      (from, to, type, target, at, op, win))
MOVES(Compare_and_swap, ZCT_UNRECORDED_COMPARE_AND_SWAP, 1, type,
      (const void *from, const void *compared, void *to, MPI_Datatype type, int target, MPI_Aint at,
       MPI_Win win),
      (from, compared, to, type, target, at, win))

/* Wrapper of a function that may wait for what was moved, or for another rank's turn. */
#define SYNCHRONIZES(name, parameters, arguments)                                                  \
    int MPI_##name parameters                                                                      \
    {                                                                                              \
        void *const caller = ZCT_CALLER;                                                           \
        const int64_t begin_ns = zct_unrecorded_begins();                                          \
        const int code = REAL(name) arguments;                                                     \
        zct_unrecorded_count(ZCT_UNRECORDED_WINDOW, caller, 0, begin_ns);                          \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(name)

SYNCHRONIZES(Win_fence, (int assert, MPI_Win win), (assert, win))
SYNCHRONIZES(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
SYNCHRONIZES(Win_complete, (MPI_Win win), (win))
SYNCHRONIZES(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
SYNCHRONIZES(Win_wait, (MPI_Win win), (win))
SYNCHRONIZES(Win_test, (MPI_Win win, int *flag), (win, flag))
SYNCHRONIZES(Win_lock, (int type, int rank, int assert, MPI_Win win), (type, rank, assert, win))
SYNCHRONIZES(Win_lock_all, (int assert, MPI_Win win), (assert, win))
SYNCHRONIZES(Win_unlock, (int rank, MPI_Win win), (rank, win))
SYNCHRONIZES(Win_unlock_all, (MPI_Win win), (win))
SYNCHRONIZES(Win_flush, (int rank, MPI_Win win), (rank, win))
SYNCHRONIZES(Win_flush_all, (MPI_Win win), (win))
SYNCHRONIZES(Win_flush_local, (int rank, MPI_Win win), (rank, win))
SYNCHRONIZES(Win_flush_local_all, (MPI_Win win), (win))
