/* SPDX-License-Identifier: BSD-3-Clause */
#include "requests.h"

#include <algorithm>
#include <utility>

#include "process.h"
#include "recorder.h"
#include "traffic.h"

namespace zc::migrate {

/* Most have none of what is freed here. */
void request_record::reset()
{
    real = MPI_REQUEST_NULL;
    made_by = "";
    what = kind::other;
    is_persistent = is_cancelled = false;
    is_active = true;
    peer = MPI_PROC_NULL;
    tag = 0;
    peers.reset();
    if (make)
        make = nullptr;
    fresh.reset();
    owner = MPI_COMM_NULL;
    if (blocks.capacity() > 0)
        std::vector<received_block>().swap(blocks);
}

requests &requests::instance()
{
    static requests *const one = new requests; /* never destroyed: exit handlers may call MPI */
    return *one;
}

request_record *requests::take_record(MPI_Request &real, const char *made_by)
{
    if (!layer::is_on() || real == MPI_REQUEST_NULL)
        return nullptr;
    const std::uint32_t number = records_.take();
    if (!number)
        end_job(layer::instance().world().rank, "more than 1,048,575 requests at once");
    request_record &one = *records_.find(number);
    one.real = real;
    one.made_by = made_by;
    real = request_handle::make(number);
    return &one;
}

MPI_Request requests::adopt(MPI_Request real, const char *made_by)
{
    take_record(real, made_by);
    return real;
}

MPI_Request requests::adopt(MPI_Request real, const char *made_by, request_record::kind what,
                            MPI_Comm comm, int peer, int tag)
{
    describe(take_record(real, made_by), what, comm, peer, tag);
    return real;
}

void requests::describe(request_record *one, request_record::kind what, MPI_Comm comm, int peer,
                        int tag)
{
    const communicator *where = layer::find(comm);
    if (!one || !where)
        return;
    one->what = what;
    one->peer = peer;
    one->tag = tag;
    one->peers = where->inter ? where->remote : where->local;
}

void requests::restore(MPI_Request handle, const char *made_by, request_record::kind what,
                       MPI_Comm comm, int peer, int tag)
{
    if (!request_handle::is_virtual(handle))
        return;
    if (!records_.take(request_handle::number(handle)))
        end_job(layer::instance().world().rank,
                "a request of the predecessor has the number of another one");
    request_record *one = find(handle);
    one->made_by = made_by;
    describe(one, what, comm, peer, tag);
}

void requests::persist(MPI_Request handle, std::function<int(MPI_Request *)> make)
{
    request_record *one = layer::is_on() ? find(handle) : nullptr;
    if (!one)
        return;
    one->is_persistent = true;
    one->is_active = false;
    one->make = std::move(make);
}

void requests::start(request_record &one)
{
    one.is_active = true;
    one.is_cancelled = false;
    if (one.what == request_record::kind::send && !recorder::is_answering())
        traffic::sent(one.peers.get(), one.peer);
}

void requests::settle(MPI_Request &handle, request_record &one, int code, MPI_Status *status)
{
    int what = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        PMPI_Error_class(code, &what);
    if (!one.is_persistent && one.real != MPI_REQUEST_NULL)
        return;
    if (recorder::is_open() && one.is_active)
        recorder::instance().settled(handle, one);
    if (one.is_active && one.what == request_record::kind::receive && !recorder::is_answering() &&
        (what == MPI_SUCCESS || what == MPI_ERR_TRUNCATE)) {
        int cancelled = 0;
        if (one.is_cancelled && status)
            PMPI_Test_cancelled(status, &cancelled);
        const int source = one.peer == MPI_ANY_SOURCE && status ? status->MPI_SOURCE : one.peer;
        if (!cancelled)
            traffic::received(one.peers.get(), source);
    }
    if (one.fresh)
        if (communicator *comm = layer::find(one.owner))
            comm->real = *one.fresh;
    if (one.is_persistent) {
        one.is_active = false;
        return;
    }
    forget(handle);
}

void requests::forget(MPI_Request &handle)
{
    records_.give_back(request_handle::number(handle));
    handle = MPI_REQUEST_NULL;
}

void requests::found(MPI_Message message, const found_message &what)
{
    const std::lock_guard guard(mutex_);
    messages_[message] = what;
}

found_message requests::take(MPI_Message message)
{
    const std::lock_guard guard(mutex_);
    const auto at = messages_.find(message);
    if (at == messages_.end())
        return {nullptr, MPI_PROC_NULL};
    found_message what = std::move(at->second);
    messages_.erase(at);
    return what;
}

std::string requests::live() const
{
    int count = 0;
    std::string first;
    records_.for_each([&](std::uint32_t, const request_record &one) {
        if (!one.is_active || count++ > 0)
            return;
        first = one.made_by;
        if (one.what == request_record::kind::other)
            return;
        const bool any = one.peer == MPI_ANY_SOURCE;
        const int rank = one.peer >= 0 && one.peers
                             ? (*one.peers)[static_cast<std::size_t>(one.peer)]
                             : one.peer;
        first += (one.what == request_record::kind::send ? " to " : " from ") +
                 (any ? std::string("any rank") : "rank " + std::to_string(rank)) +
                 (one.tag == MPI_ANY_TAG ? "" : ", tag " + std::to_string(one.tag));
    });
    if (count == 0)
        return "";
    return std::to_string(count) + (count == 1 ? " live request" : " live requests") +
           " (first: " + first + ")";
}

void requests::release_persistent()
{
    records_.for_each([](std::uint32_t, request_record &one) {
        if (one.is_persistent && one.real != MPI_REQUEST_NULL)
            PMPI_Request_free(&one.real);
    });
}

void requests::make_persistent()
{
    records_.for_each([](std::uint32_t, request_record &one) {
        if (one.is_persistent && one.make)
            one.make(&one.real);
    });
}

std::vector<std::int64_t> requests::persistent() const
{
    std::vector<std::int64_t> all;
    records_.for_each([&](std::uint32_t number, const request_record &one) {
        if (one.is_persistent)
            all.push_back(value_of(request_handle::make(number)));
    });
    return all;
}

std::size_t requests::missing(const std::vector<std::int64_t> &all) const
{
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [&](std::int64_t handle) { return !find(handle_of<MPI_Request>(handle)); }));
}

void requests::keep_persistent(const std::vector<std::int64_t> &kept)
{
    std::vector<std::uint32_t> gone;
    records_.for_each([&](std::uint32_t number, const request_record &one) {
        const std::int64_t handle = value_of(request_handle::make(number));
        if (!one.is_persistent || std::ranges::find(kept, handle) == kept.end())
            gone.push_back(number);
    });
    for (std::uint32_t number : gone)
        records_.give_back(number);
}

kept_type::kept_type(MPI_Datatype type)
{
    int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
    if (type == MPI_DATATYPE_NULL ||
        PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
        combiner == MPI_COMBINER_NAMED) {
        type_ = std::make_shared<MPI_Datatype>(type);
        return;
    }
    MPI_Datatype copy;
    PMPI_Type_dup(type, &copy);
    type_ = std::shared_ptr<MPI_Datatype>(new MPI_Datatype(copy), [](MPI_Datatype *one) {
        int down = 0;
        PMPI_Finalized(&down);
        if (!down)
            PMPI_Type_free(one);
        delete one;
    });
}

} // namespace zc::migrate
