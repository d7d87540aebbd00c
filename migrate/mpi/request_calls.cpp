/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls that complete, start or end requests, and those of messages that were probed. The program
 * has handles of the layer's, and MPI is given its own. As those that are generated, calls are of
 * two functions, so that a program that does not migrate pays for nothing of the second.
 */
#include <algorithm>
#include <mpi.h>
#include <vector>

#include "few.h"
#include "layer.h"
#include "open_things.h"
#include "recorder.h"
#include "requests.h"
#include "tell.h"
#include "traffic.h"

using namespace zc::migrate;

namespace {

/** The requests of one call, as MPI has them. */
class request_array {
  public:
    request_array(int count, MPI_Request handles[])
        : handles_(handles), real_(static_cast<std::size_t>(std::max(count, 0))),
          records_(real_.size())
    {
        const requests &all = requests::instance();
        for (std::size_t i = 0; i < real_.size(); i++) {
            records_[i] = all.find(handles[i]);
            real_[i] = records_[i] ? records_[i]->real : handles[i];
            needs_ = needs_ || (records_[i] && records_[i]->is_active &&
                                (records_[i]->is_cancelled || records_[i]->peer == MPI_ANY_SOURCE));
        }
    }
    MPI_Request *real() noexcept { return real_.data(); }
    request_record *record(int i) const noexcept { return records_[static_cast<std::size_t>(i)]; }

    /** The program's, or own ones if it wants none and they are needed here. */
    MPI_Status *statuses(MPI_Status *wanted)
    {
        if (wanted != MPI_STATUSES_IGNORE || !needs_)
            return wanted;
        own_.resize(real_.size());
        return own_.data();
    }

    /** Those that MPI has not completed stay. */
    void put_back()
    {
        for (std::size_t i = 0; i < real_.size(); i++) {
            if (records_[i])
                records_[i]->real = real_[i];
            else
                handles_[i] = real_[i];
        }
    }
    void settle(int i, int code, MPI_Status *status)
    {
        const auto at = static_cast<std::size_t>(i);
        if (records_[at])
            requests::instance().settle(handles_[at], *records_[at], code, status);
    }

  private:
    static constexpr std::size_t kFew = 32; /* as many as most calls have */

    MPI_Request *handles_;
    few<MPI_Request, kFew> real_;
    few<request_record *, kFew> records_;
    std::vector<MPI_Status> own_;
    bool needs_ = false;
};

MPI_Status *of(MPI_Status *statuses, int i)
{
    return statuses == MPI_STATUSES_IGNORE ? nullptr : statuses + i;
}

int code_of(int code, const MPI_Status *status)
{
    return code == MPI_ERR_IN_STATUS && status ? status->MPI_ERROR : code;
}

void settle_all(request_array &all, int count, int code, MPI_Status *statuses)
{
    all.put_back();
    for (int i = 0; i < count; i++)
        if (const int own = code_of(code, of(statuses, i)); own != MPI_ERR_PENDING)
            all.settle(i, own, of(statuses, i));
}

void remember_message(MPI_Message message, MPI_Comm comm, int source)
{
    const communicator *where = layer::find(comm);
    if (where && source >= 0)
        requests::instance().found(message, {where->shared_peers(), source});
}

void settle_some(request_array &all, int done, const int indices[], int code, MPI_Status *statuses)
{
    all.put_back();
    for (int i = 0; done != MPI_UNDEFINED && i < done; i++)
        all.settle(indices[i], code_of(code, of(statuses, i)), of(statuses, i));
}

} // namespace

extern "C" {
#pragma GCC visibility push(default)

static int completed_MPI_Wait(MPI_Request *request, request_record &one, MPI_Status *status)
{
    const int code = PMPI_Wait(&one.real, status);
    requests::instance().settle(*request, one, code, status);
    return code;
}

[[gnu::noinline]] static int noted_MPI_Wait(MPI_Request *request, request_record &one,
                                            MPI_Status *status)
{
    return recorder::complete(
        "MPI_Wait", 1, request, [&] { return completed_MPI_Wait(request, one, status); },
        [&](recorder::visitor &with) { with.status(status); });
}

[[gnu::noinline]] static int seen_MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    const span inside;
    request_record *one = layer::is_on() ? requests::instance().find(*request) : nullptr;
    if (!one)
        return PMPI_Wait(request, status);
    MPI_Status own;
    MPI_Status *const seen = status == MPI_STATUS_IGNORE ? &own : status;
    return recorder::is_open() ? noted_MPI_Wait(request, *one, seen)
                               : completed_MPI_Wait(request, *one, seen);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (layer::is_off()) [[likely]]
        return PMPI_Wait(request, status);
    return seen_MPI_Wait(request, status);
}

static int completed_MPI_Test(MPI_Request *request, request_record &one, int *flag,
                              MPI_Status *status)
{
    const int code = PMPI_Test(&one.real, flag, status);
    if (code != MPI_SUCCESS || *flag)
        requests::instance().settle(*request, one, code, status);
    return code;
}

[[gnu::noinline]] static int noted_MPI_Test(MPI_Request *request, request_record &one, int *flag,
                                            MPI_Status *status)
{
    return recorder::complete(
        "MPI_Test", 1, request, [&] { return completed_MPI_Test(request, one, flag, status); },
        [&](recorder::visitor &with) {
            with.value(*flag);
            with.status(status);
        });
}

[[gnu::noinline]] static int seen_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    const span inside;
    request_record *one = layer::is_on() ? requests::instance().find(*request) : nullptr;
    if (!one)
        return PMPI_Test(request, flag, status);
    MPI_Status own;
    MPI_Status *const seen = status == MPI_STATUS_IGNORE ? &own : status;
    return recorder::is_open() ? noted_MPI_Test(request, *one, flag, seen)
                               : completed_MPI_Test(request, *one, flag, seen);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (layer::is_off()) [[likely]]
        return PMPI_Test(request, flag, status);
    return seen_MPI_Test(request, flag, status);
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (!layer::is_on())
        return PMPI_Request_get_status(request, flag, status);
    return recorder::call(
        "MPI_Request_get_status", [&] { return std::vector{value_of(request)}; },
        [&] { return PMPI_Request_get_status(requests::real(request), flag, status); },
        [&](recorder::visitor &with) {
            with.value(*flag);
            with.status(status);
        });
}

static int completed_MPI_Waitall(int count, MPI_Request handles[], MPI_Status statuses[])
{
    request_array all(count, handles);
    MPI_Status *const seen = all.statuses(statuses);
    const int code = PMPI_Waitall(count, all.real(), seen);
    settle_all(all, count, code, seen);
    return code;
}

[[gnu::noinline]] static int noted_MPI_Waitall(int count, MPI_Request handles[],
                                               MPI_Status statuses[])
{
    return recorder::complete(
        "MPI_Waitall", count, handles,
        [&] { return completed_MPI_Waitall(count, handles, statuses); },
        [&](recorder::visitor &with) { with.statuses(statuses, count); });
}

[[gnu::noinline]] static int seen_MPI_Waitall(int count, MPI_Request handles[],
                                              MPI_Status statuses[])
{
    const span inside;
    if (!layer::is_on())
        return PMPI_Waitall(count, handles, statuses);
    return recorder::is_open() ? noted_MPI_Waitall(count, handles, statuses)
                               : completed_MPI_Waitall(count, handles, statuses);
}

int MPI_Waitall(int count, MPI_Request handles[], MPI_Status statuses[])
{
    if (layer::is_off()) [[likely]]
        return PMPI_Waitall(count, handles, statuses);
    return seen_MPI_Waitall(count, handles, statuses);
}

[[gnu::noinline]] static int seen_MPI_Testall(int count, MPI_Request handles[], int *flag,
                                              MPI_Status statuses[])
{
    const span inside;
    if (!layer::is_on())
        return PMPI_Testall(count, handles, flag, statuses);
    return recorder::complete(
        "MPI_Testall", count, handles,
        [&] {
            request_array all(count, handles);
            MPI_Status *const seen = all.statuses(statuses);
            const int code = PMPI_Testall(count, all.real(), flag, seen);
            if (code != MPI_SUCCESS || *flag)
                settle_all(all, count, code, seen);
            return code;
        },
        [&](recorder::visitor &with) {
            with.value(*flag);
            with.statuses(statuses, *flag ? count : 0);
        });
}

int MPI_Testall(int count, MPI_Request handles[], int *flag, MPI_Status statuses[])
{
    if (layer::is_off()) [[likely]]
        return PMPI_Testall(count, handles, flag, statuses);
    return seen_MPI_Testall(count, handles, flag, statuses);
}

[[gnu::noinline]] static int seen_MPI_Waitany(int count, MPI_Request handles[], int *index,
                                              MPI_Status *status)
{
    const span inside;
    if (!layer::is_on())
        return PMPI_Waitany(count, handles, index, status);
    return recorder::complete(
        "MPI_Waitany", count, handles,
        [&] {
            request_array all(count, handles);
            MPI_Status own;
            MPI_Status *const seen = status == MPI_STATUS_IGNORE ? &own : status;
            const int code = PMPI_Waitany(count, all.real(), index, seen);
            settle_some(all, *index == MPI_UNDEFINED ? MPI_UNDEFINED : 1, index, code, seen);
            return code;
        },
        [&](recorder::visitor &with) {
            with.value(*index);
            with.status(status);
        });
}

int MPI_Waitany(int count, MPI_Request handles[], int *index, MPI_Status *status)
{
    if (layer::is_off()) [[likely]]
        return PMPI_Waitany(count, handles, index, status);
    return seen_MPI_Waitany(count, handles, index, status);
}

[[gnu::noinline]] static int seen_MPI_Testany(int count, MPI_Request handles[], int *index,
                                              int *flag, MPI_Status *status)
{
    const span inside;
    if (!layer::is_on())
        return PMPI_Testany(count, handles, index, flag, status);
    return recorder::complete(
        "MPI_Testany", count, handles,
        [&] {
            request_array all(count, handles);
            MPI_Status own;
            MPI_Status *const seen = status == MPI_STATUS_IGNORE ? &own : status;
            const int code = PMPI_Testany(count, all.real(), index, flag, seen);
            if (code != MPI_SUCCESS || *flag)
                settle_some(all, *index == MPI_UNDEFINED ? MPI_UNDEFINED : 1, index, code, seen);
            return code;
        },
        [&](recorder::visitor &with) {
            with.value(*index);
            with.value(*flag);
            with.status(status);
        });
}

int MPI_Testany(int count, MPI_Request handles[], int *index, int *flag, MPI_Status *status)
{
    if (layer::is_off()) [[likely]]
        return PMPI_Testany(count, handles, index, flag, status);
    return seen_MPI_Testany(count, handles, index, flag, status);
}

[[gnu::noinline]] static int seen_MPI_Waitsome(int count, MPI_Request handles[], int *done,
                                               int indices[], MPI_Status statuses[])
{
    const span inside;
    if (!layer::is_on())
        return PMPI_Waitsome(count, handles, done, indices, statuses);
    return recorder::complete(
        "MPI_Waitsome", count, handles,
        [&] {
            request_array all(count, handles);
            MPI_Status *const seen = all.statuses(statuses);
            const int code = PMPI_Waitsome(count, all.real(), done, indices, seen);
            settle_some(all, *done, indices, code, seen);
            return code;
        },
        [&](recorder::visitor &with) {
            with.value(*done);
            with.array(indices, *done);
            with.statuses(statuses, *done);
        });
}

int MPI_Waitsome(int count, MPI_Request handles[], int *done, int indices[], MPI_Status statuses[])
{
    if (layer::is_off()) [[likely]]
        return PMPI_Waitsome(count, handles, done, indices, statuses);
    return seen_MPI_Waitsome(count, handles, done, indices, statuses);
}

[[gnu::noinline]] static int seen_MPI_Testsome(int count, MPI_Request handles[], int *done,
                                               int indices[], MPI_Status statuses[])
{
    const span inside;
    if (!layer::is_on())
        return PMPI_Testsome(count, handles, done, indices, statuses);
    return recorder::complete(
        "MPI_Testsome", count, handles,
        [&] {
            request_array all(count, handles);
            MPI_Status *const seen = all.statuses(statuses);
            const int code = PMPI_Testsome(count, all.real(), done, indices, seen);
            settle_some(all, *done, indices, code, seen);
            return code;
        },
        [&](recorder::visitor &with) {
            with.value(*done);
            with.array(indices, *done);
            with.statuses(statuses, *done);
        });
}

int MPI_Testsome(int count, MPI_Request handles[], int *done, int indices[], MPI_Status statuses[])
{
    if (layer::is_off()) [[likely]]
        return PMPI_Testsome(count, handles, done, indices, statuses);
    return seen_MPI_Testsome(count, handles, done, indices, statuses);
}

[[gnu::noinline]] static int seen_MPI_Start(MPI_Request *request)
{
    const telling inside;
    inside.started(1, request);
    request_record *one = layer::is_on() ? requests::instance().find(*request) : nullptr;
    if (!one)
        return PMPI_Start(request);
    requests::instance().start(*one);
    return recorder::call(
        "MPI_Start", [&] { return std::vector{value_of(*request)}; },
        [&] { return PMPI_Start(&one->real); }, [](recorder::visitor &) {});
}

int MPI_Start(MPI_Request *request)
{
    if (layer::is_off()) [[likely]]
        return PMPI_Start(request);
    return seen_MPI_Start(request);
}

[[gnu::noinline]] static int seen_MPI_Startall(int count, MPI_Request handles[])
{
    const telling inside;
    inside.started(count, handles);
    if (!layer::is_on())
        return PMPI_Startall(count, handles);
    request_array all(count, handles);
    for (int i = 0; i < count; i++)
        if (request_record *one = all.record(i))
            requests::instance().start(*one);
    return recorder::call(
        "MPI_Startall", [&] { return std::vector<std::int64_t>{count}; },
        [&] {
            const int code = PMPI_Startall(count, all.real());
            all.put_back();
            return code;
        },
        [](recorder::visitor &) {});
}

int MPI_Startall(int count, MPI_Request handles[])
{
    if (layer::is_off()) [[likely]]
        return PMPI_Startall(count, handles);
    return seen_MPI_Startall(count, handles);
}

int MPI_Cancel(MPI_Request *request)
{
    request_record *one = layer::is_on() ? requests::instance().find(*request) : nullptr;
    if (!one)
        return PMPI_Cancel(request);
    one->is_cancelled = true;
    return recorder::is_answering() ? int{MPI_SUCCESS} : PMPI_Cancel(&one->real);
}

int MPI_Request_free(MPI_Request *request)
{
    if (profiler::is_open())
        profiler::instance().forget(*request);
    request_record *one = layer::is_on() ? requests::instance().find(*request) : nullptr;
    if (!one)
        return PMPI_Request_free(request);
    /* A persistent one, while MPI has none of it. */
    const int code =
        one->real == MPI_REQUEST_NULL ? int{MPI_SUCCESS} : PMPI_Request_free(&one->real);
    if (code == MPI_SUCCESS)
        requests::instance().forget(*request);
    return code;
}

int MPI_Grequest_complete(MPI_Request request)
{
    return PMPI_Grequest_complete(requests::real(request));
}

/* ---- messages that were probed ---- */

[[gnu::noinline]] static int seen_MPI_Mprobe(int source, int tag, MPI_Comm comm,
                                             MPI_Message *message, MPI_Status *status)
{
    const span inside;
    MPI_Status own;
    MPI_Status *const seen = status == MPI_STATUS_IGNORE ? &own : status;
    return recorder::call(
        "MPI_Mprobe",
        [&] {
            return std::vector<std::int64_t>{source, tag, value_of(comm)};
        },
        [&] {
            const int code = PMPI_Mprobe(source, tag, layer::real(comm), message, seen);
            if (code == MPI_SUCCESS)
                remember_message(*message, comm, seen->MPI_SOURCE);
            return code;
        },
        [&](recorder::visitor &with) {
            with.value(*message);
            with.status(seen);
        });
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    if (layer::is_off()) [[likely]]
        return PMPI_Mprobe(source, tag, comm, message, status);
    return seen_MPI_Mprobe(source, tag, comm, message, status);
}

[[gnu::noinline]] static int seen_MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag,
                                              MPI_Message *message, MPI_Status *status)
{
    const span inside;
    MPI_Status own;
    MPI_Status *const seen = status == MPI_STATUS_IGNORE ? &own : status;
    return recorder::call(
        "MPI_Improbe",
        [&] {
            return std::vector<std::int64_t>{source, tag, value_of(comm)};
        },
        [&] {
            const int code = PMPI_Improbe(source, tag, layer::real(comm), flag, message, seen);
            if (code == MPI_SUCCESS && *flag)
                remember_message(*message, comm, seen->MPI_SOURCE);
            return code;
        },
        [&](recorder::visitor &with) {
            with.value(*flag);
            with.value(*message);
            with.status(seen);
        });
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    if (layer::is_off()) [[likely]]
        return PMPI_Improbe(source, tag, comm, flag, message, status);
    return seen_MPI_Improbe(source, tag, comm, flag, message, status);
}

#pragma GCC visibility pop
} // extern "C"

namespace {

template <typename Count, typename Receive>
int receive_found(Receive receive, const char *name, void *buf, Count count, MPI_Datatype type,
                  MPI_Message *message, MPI_Status *status)
{
    if (layer::is_off()) [[likely]]
        return receive(buf, count, type, message, status);
    const span inside;
    if (!layer::is_on())
        return receive(buf, count, type, message, status);
    return recorder::call(
        name, [&] { return std::vector<std::int64_t>{count}; },
        [&] {
            const found_message what = requests::instance().take(*message);
            const int code = receive(buf, count, type, message, status);
            traffic::received(what.peers.get(), what.source);
            return code;
        },
        [&](recorder::visitor &with) {
            with.data(buf, count, type);
            with.value(*message);
            with.status(status);
        });
}

template <typename Count, typename Receive>
int start_receive_found(Receive receive, const char *name, void *buf, Count count,
                        MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    if (!layer::is_on())
        return receive(buf, count, type, message, request);
    return recorder::call(
        name, [&] { return std::vector<std::int64_t>{count}; },
        [&] {
            const found_message what = requests::instance().take(*message);
            const int code = receive(buf, count, type, message, request);
            if (code != MPI_SUCCESS)
                return code;
            *request = requests::instance().adopt(*request, name);
            if (request_record *one = requests::instance().find(*request)) {
                one->what = request_record::kind::receive;
                one->peer = what.source;
                one->peers = what.peers ? requests::instance().keep(what.peers) : nullptr;
                one->tag = MPI_ANY_TAG;
            }
            return code;
        },
        [&](recorder::visitor &with) {
            with.later();
            with.data(buf, count, type);
            with.value(*message);
            with.request(request, name, request_record::kind::other, MPI_COMM_NULL, MPI_PROC_NULL,
                         0);
        });
}

} // namespace

extern "C" {
#pragma GCC visibility push(default)

int MPI_Mrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    return receive_found(PMPI_Mrecv, "MPI_Mrecv", buf, count, type, message, status);
}

int MPI_Imrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    return start_receive_found(PMPI_Imrecv, "MPI_Imrecv", buf, count, type, message, request);
}

#if MPI_VERSION >= 4
int MPI_Mrecv_c(void *buf, MPI_Count count, MPI_Datatype type, MPI_Message *message,
                MPI_Status *status)
{
    return receive_found(PMPI_Mrecv_c, "MPI_Mrecv_c", buf, count, type, message, status);
}

int MPI_Imrecv_c(void *buf, MPI_Count count, MPI_Datatype type, MPI_Message *message,
                 MPI_Request *request)
{
    return start_receive_found(PMPI_Imrecv_c, "MPI_Imrecv_c", buf, count, type, message, request);
}
#endif

/* ---- what cannot be made again is counted ---- */

int MPI_Win_free(MPI_Win *window)
{
    const int code = PMPI_Win_free(window);
    if (code == MPI_SUCCESS && layer::is_on())
        open_things::windows--;
    return code;
}

/* MPICH may have been built without MPI-IO: then no program calls this. */
#pragma weak PMPI_File_close
int MPI_File_close(MPI_File *file)
{
    const int code = PMPI_File_close(file);
    if (code == MPI_SUCCESS && layer::is_on())
        open_things::files--;
    return code;
}

#pragma GCC visibility pop
} // extern "C"
