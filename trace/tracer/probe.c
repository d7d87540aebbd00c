/* SPDX-License-Identifier: BSD-3-Clause */

/* Probes: looking for a message may take as long as receiving it. */

#include "probe.h"

#include <errno.h>

#include "communicator.h"
#include "polling.h"

static void note_probed(MPI_Message message, MPI_Comm comm)
{
    if (!zct.active || message == zct_real.message_no_proc || message == zct_real.message_null)
        return;
    zct_lock();
    const uint32_t id = zct_comm_get_locked(comm)->id;
    struct zct_message *entry = zct_table_insert(&zct.messages, ZCT_KEY(message));
    if (entry)
        *entry = (struct zct_message){zct_writer_begin(&zct.writer), id};
    else
        zct.writer.error = ENOMEM;
    zct_unlock();
}

static int64_t probe_begins(void)
{
    return zct.active && zct.calls ? zct_now() : 0;
}

static void probe_ended(int64_t begin_ns, void *caller)
{
    if (begin_ns && zct.active)
        zct_call_ended(ZCT_FUNCTION_PROBE, caller, begin_ns, zct_now_after());
}

/* One that may find nothing: when the waiting began, to be asked for before anything is recorded.
 */
static int64_t look_ended(int64_t begin_ns, bool found)
{
    if (begin_ns && found)
        return zct_polling_began(begin_ns);
    if (begin_ns)
        zct_polling_failed(begin_ns);
    return 0;
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    void *const caller = ZCT_CALLER;
    const int64_t begin_ns = probe_begins();
    const int code = REAL(Probe)(source, tag, comm, status);
    probe_ended(begin_ns, caller);
    return code;
}
ZCT_WRAPS(Probe)

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    void *const caller = ZCT_CALLER;
    const int64_t begin_ns = probe_begins();
    const int code = REAL(Iprobe)(source, tag, comm, flag, status);
    if (code == MPI_SUCCESS)
        probe_ended(look_ended(begin_ns, *flag), caller);
    return code;
}
ZCT_WRAPS(Iprobe)

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    void *const caller = ZCT_CALLER;
    const int64_t begin_ns = probe_begins();
    const int code = REAL(Mprobe)(source, tag, comm, message, status);
    if (code == MPI_SUCCESS)
        note_probed(*message, comm);
    probe_ended(begin_ns, caller);
    return code;
}
ZCT_WRAPS(Mprobe)

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    void *const caller = ZCT_CALLER;
    const int64_t begin_ns = probe_begins();
    const int code = REAL(Improbe)(source, tag, comm, flag, message, status);
    if (code != MPI_SUCCESS)
        return code;
    const int64_t waited_ns = look_ended(begin_ns, *flag);
    if (*flag)
        note_probed(*message, comm);
    probe_ended(waited_ns, caller);
    return code;
}
ZCT_WRAPS(Improbe)

bool zct_probe_init(void)
{
    return zct_table_init(&zct.messages, sizeof(struct zct_message));
}
