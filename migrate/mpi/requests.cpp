/* SPDX-License-Identifier: BSD-3-Clause */
#include "requests.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "process.h"
#include "recorder.h"
#include "traffic.h"

namespace zc::migrate {

inline request_record *requests::take_record(MPI_Request &real, const char *made_by)
{
    if (!layer::is_on() || real == MPI_REQUEST_NULL)
        return nullptr;
    const std::uint32_t number = records_.take();
    if (!number)
        end_job(layer::instance().world().rank, "more than 1,048,575 requests at once");
    request_record &one = records_[number];
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

inline void requests::describe(request_record &one, request_record::kind what,
                               const communicator &where, int peer, int tag)
{
    one.what = what;
    one.peer = peer;
    one.tag = tag;
    if (!where.peers_kept.load(std::memory_order_relaxed)) [[unlikely]] {
        keep(where.shared_peers());
        where.peers_kept.store(true, std::memory_order_relaxed);
    }
    one.peers.store(&where.peers(), std::memory_order_relaxed);
}

MPI_Request requests::adopt(MPI_Request real, const char *made_by, request_record::kind what,
                            comm_argument where, int peer, int tag)
{
    request_record *one = take_record(real, made_by);
    if (one && where.known()) [[likely]]
        describe(*one, what, *where.known(), peer, tag);
    return real;
}

const members *requests::keep(const shared_members &list)
{
    const std::lock_guard guard(mutex_);
    if (lists_.size() >= most_lists_)
        drop_lists();
    lists_.try_emplace(list.get(), list);
    return list.get();
}

/* Those that no communicator and no request has any more. A request that is just being made has a
 * list of which its maker has another owner. */
void requests::drop_lists()
{
    std::unordered_set<const members *> used;
    records_.for_each([&](std::uint32_t, const request_record &one) {
        if (const members *list = one.known_peers())
            used.insert(list);
    });
    std::erase_if(lists_, [&](const auto &each) {
        return each.second.use_count() == 1 && !used.contains(each.first);
    });
    most_lists_ = std::max(kFewLists, 2 * lists_.size());
}

void requests::restore(MPI_Request handle, const char *made_by, request_record::kind what,
                       comm_argument where, int peer, int tag)
{
    if (!request_handle::is_virtual(handle))
        return;
    if (!records_.take(request_handle::number(handle)))
        end_job(layer::instance().world().rank,
                "a request of the predecessor has the number of another one");
    request_record *one = find(handle);
    one->made_by = made_by;
    if (where.known())
        describe(*one, what, *where.known(), peer, tag);
}

void requests::persist(MPI_Request handle, std::function<int(MPI_Request *)> make)
{
    request_record *one = layer::is_on() ? find(handle) : nullptr;
    if (!one)
        return;
    one->is_persistent = true;
    one->is_active = false;
    one->with_more().make = std::move(make);
}

void requests::start(request_record &one)
{
    one.is_active = true;
    one.is_cancelled = false;
    if (one.what == request_record::kind::send && !recorder::is_answering())
        traffic::sent(one.known_peers(), one.peer);
}

/* Most are messages that have come or gone. */
void requests::settle(MPI_Request &handle, request_record &one, int code, MPI_Status *status)
{
    if (code != MPI_SUCCESS || !one.is_active || one.is_cancelled || recorder::is_open() ||
        (one.more && !one.is_persistent)) [[unlikely]] {
        settle_slowly(handle, one, code, status);
        return;
    }
    if (one.real != MPI_REQUEST_NULL && !one.is_persistent)
        return;
    if (one.what == request_record::kind::receive)
        traffic::received(one.known_peers(),
                          one.peer == MPI_ANY_SOURCE && status ? status->MPI_SOURCE : one.peer);
    if (one.is_persistent)
        one.is_active = false;
    else
        forget(handle);
}

void requests::settle_slowly(MPI_Request &handle, request_record &one, int code, MPI_Status *status)
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
            traffic::received(one.known_peers(), source);
    }
    if (one.more && one.more->fresh)
        if (communicator *comm = layer::find(one.more->owner))
            comm->real = *one.more->fresh;
    if (one.is_persistent) {
        one.is_active = false;
        return;
    }
    forget(handle);
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
        const members *peers = one.known_peers();
        const int rank =
            one.peer >= 0 && peers ? (*peers)[static_cast<std::size_t>(one.peer)] : one.peer;
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
        if (one.is_persistent && one.more && one.more->make)
            one.more->make(&one.real);
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
