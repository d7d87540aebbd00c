/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_connecting.h"
#include "zc_path.h"

/* Atomic. */
static struct {
    int calls;
    int ports;
} now;

/* @change: 1 or -1. */
static void count_call(int change)
{
    if (__atomic_add_fetch(&now.calls, change, __ATOMIC_SEQ_CST) == 0 && MPIDI_ZC_global.paths) {
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
        if (!MPIDI_ZC_connecting()) {
            MPIDI_ZC_paths_let_go();
        }
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    }
}

void MPIDI_ZC_connecting_begin(void)
{
    count_call(1);
}

void MPIDI_ZC_connecting_done(void)
{
    count_call(-1);
}

static void count_port(int change)
{
    __atomic_add_fetch(&now.ports, change, __ATOMIC_SEQ_CST);
}

void MPIDI_ZC_connecting_init(void)
{
    memset(&now, 0, sizeof(now));
    MPIR_Comm_connecting_hook = count_call;
    MPIDIU_port_hook = count_port;
}

void MPIDI_ZC_connecting_end(void)
{
    MPIR_Comm_connecting_hook = NULL;
    MPIDIU_port_hook = NULL;
}

bool MPIDI_ZC_connecting(void)
{
    return __atomic_load_n(&now.calls, __ATOMIC_SEQ_CST) > 0;
}

int MPIDI_ZC_connecting_ports(void)
{
    return __atomic_load_n(&now.ports, __ATOMIC_SEQ_CST);
}

/* Does nobody leave from here on? */
static bool hold(void)
{
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    const bool held = !MPIDI_ZC_global.paths || MPIDI_ZC_paths_hold();
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return held;
}

int MPIDI_ZC_connecting_hold(void)
{
    int mpi_errno = MPI_SUCCESS;

    while (mpi_errno == MPI_SUCCESS && !hold()) {
        mpi_errno = MPID_Progress_test(NULL);
    }
    return mpi_errno;
}
