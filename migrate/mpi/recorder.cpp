/* SPDX-License-Identifier: BSD-3-Clause */
#include "recorder.h"

#include <climits>
#include <cstring>
#include <utility>

#include "error.h"
#include "layer.h"
#include "process.h"
#include "remaking.h"

namespace zc::migrate {

namespace {

/* What a block holds, without the gaps of its type. False if it is too large for that. */
bool pack(const received_block &from, std::vector<std::byte> &to)
{
    int size = 0, used = 0;
    if (from.count > INT_MAX || PMPI_Pack_size(static_cast<int>(from.count), from.type,
                                               MPI_COMM_SELF, &size) != MPI_SUCCESS)
        return false;
    const std::size_t before = to.size();
    to.resize(before + static_cast<std::size_t>(size));
    PMPI_Pack(from.at, static_cast<int>(from.count), from.type, to.data() + before, size, &used,
              MPI_COMM_SELF);
    to.resize(before + static_cast<std::size_t>(used));
    return true;
}

void unpack(const received_block &to, journal::reader &from)
{
    int size = 0, used = 0;
    PMPI_Pack_size(static_cast<int>(to.count), to.type, MPI_COMM_SELF, &size);
    const auto length = from.get<std::uint64_t>();
    const auto bytes = from.get_span(length);
    PMPI_Unpack(bytes.data(), static_cast<int>(length), &used, to.at, static_cast<int>(to.count),
                to.type, MPI_COMM_SELF);
}

} // namespace

recorder &recorder::instance()
{
    static recorder *const one = new recorder; /* never destroyed, as the layer */
    return *one;
}

void recorder::record(std::size_t most)
{
    journal_ = journal(most);
    state_ = most > 0 ? state::recording : state::closed;
    open_ = most > 0;
}

void recorder::answer(std::vector<std::byte> bytes,
                      std::function<void(const std::string &)> give_up)
{
    journal_ = journal(std::move(bytes));
    give_up_ = std::move(give_up);
    state_ = state::answering;
    open_ = true;
}

void recorder::close() noexcept
{
    state_ = state::closed;
    open_ = false;
}

int recorder::give(const char *name, journal::arguments with,
                   const std::function<void(visitor &)> &visits)
{
    const std::lock_guard guard(mutex_);
    try {
        journal::answer known = journal_.next(name, with);
        visitor to(known.returned);
        visits(to);
        return known.code;
    } catch (const std::exception &problem) {
        give_up_(problem.what());
    }
    return MPI_ERR_OTHER;
}

void recorder::note(const char *name, journal::arguments with, int code,
                    const std::function<void(visitor &)> &visits)
{
    const std::lock_guard guard(mutex_);
    if (state_ != state::recording)
        return;
    std::vector<std::byte> returned;
    visitor from(returned);
    if (code == MPI_SUCCESS)
        visits(from);
    if (journal_.note(name, with, code, returned))
        return;
    close();
    complain(layer::instance().world().rank,
             "the record of the initialisation is longer than ZC_MIGRATE_RECORD allows, and is "
             "dropped: a process that takes over this rank must not communicate before its first "
             "safe point");
}

void recorder::settled(MPI_Request handle, const request_record &one)
{
    if (state_ != state::recording)
        return;
    completion done{value_of(handle), {}};
    for (const received_block &each : one.blocks()) {
        std::vector<std::byte> packed;
        pack(each, packed);
        const std::uint64_t length = packed.size();
        journal::writer out(done.data);
        out.put(length);
        out.put(packed.data(), packed.size());
    }
    completions_.push_back(std::move(done));
}

/** Those of @handles that the call has completed, and what they have received. */
void recorder::completed(visitor &to, int count, MPI_Request handles[])
{
    if (!to.gives()) {
        to.out_.put(static_cast<std::uint32_t>(completions_.size()));
        for (const completion &one : completions_) {
            to.out_.put(one.handle);
            to.out_.put(static_cast<std::uint64_t>(one.data.size()));
            to.out_.put(one.data.data(), one.data.size());
        }
        completions_.clear();
        return;
    }
    for (auto left = to.in_.get<std::uint32_t>(); left > 0; left--) {
        const auto handle = to.in_.get<std::int64_t>();
        journal::reader data(to.in_.get_span(to.in_.get<std::uint64_t>()));
        for (int i = 0; i < count; i++) {
            request_record *one = requests::instance().find(handles[i]);
            if (!one || value_of(handles[i]) != handle)
                continue;
            for (const received_block &each : one->blocks())
                unpack(each, data);
            requests::instance().settle(handles[i], *one, MPI_SUCCESS, nullptr);
            break;
        }
    }
}

/* ---- the visitor ---- */

void recorder::visitor::bytes(void *at, std::size_t length)
{
    if (gives_)
        in_.get(at, length);
    else
        out_.put(at, length);
}

void recorder::visitor::text(char *at, std::size_t room)
{
    std::uint32_t length = gives_ ? 0 : static_cast<std::uint32_t>(strnlen(at, room - 1));
    value(length);
    bytes(at, length);
    at[length] = '\0';
}

void recorder::visitor::info(MPI_Info *one)
{
    int keys = 0;
    if (gives_)
        PMPI_Info_create(one);
    else
        PMPI_Info_get_nkeys(*one, &keys);
    value(keys);
    for (int i = 0; i < keys; i++) {
        char key[MPI_MAX_INFO_KEY + 1] = "", is[MPI_MAX_INFO_VAL + 1] = "";
        int there = 0;
        if (!gives_) {
            PMPI_Info_get_nthkey(*one, i, key);
            PMPI_Info_get(*one, key, MPI_MAX_INFO_VAL, is, &there);
        }
        text(key, sizeof key);
        text(is, sizeof is);
        if (gives_)
            PMPI_Info_set(*one, key, is);
    }
}

void recorder::visitor::communicator_(MPI_Comm *one)
{
    std::int64_t handle = gives_ ? 0 : value_of(*one);
    value(handle);
    const bool is_one = comm_handle::is_virtual(handle_of<MPI_Comm>(handle));
    if (gives_)
        *one = handle_of<MPI_Comm>(handle);
    if (!is_one)
        return;
    std::string told;
    if (!gives_)
        told = remaking::describe(*layer::find(*one)).to_text();
    auto length = static_cast<std::uint32_t>(told.size());
    value(length);
    told.resize(length);
    bytes(told.data(), length);
    if (gives_)
        layer::instance().restore(communicator_record::from_text(told));
}

void recorder::visitor::group_(MPI_Group *one)
{
    std::int64_t handle = gives_ ? 0 : value_of(*one);
    value(handle);
    if (gives_)
        *one = handle_of<MPI_Group>(handle);
}

void recorder::visitor::data(void *at, MPI_Count count, MPI_Datatype type)
{
    if (count <= 0 || at == MPI_IN_PLACE)
        return;
    received_block block{at, count, kept_type(type)};
    if (later_) {
        blocks_.push_back(std::move(block));
        return;
    }
    if (gives_) {
        unpack(block, in_);
        return;
    }
    std::vector<std::byte> packed;
    pack(block, packed);
    out_.put(static_cast<std::uint64_t>(packed.size()));
    out_.put(packed.data(), packed.size());
}

void recorder::visitor::request(MPI_Request *one, const char *made_by, request_record::kind what,
                                comm_argument where, int peer, int tag)
{
    std::int64_t handle = gives_ ? 0 : value_of(*one);
    value(handle);
    if (gives_) {
        *one = handle_of<MPI_Request>(handle);
        requests::instance().restore(*one, made_by, what, where, peer, tag);
    }
    request_record *record = requests::instance().find(*one);
    if (record && !blocks_.empty())
        record->with_more().blocks = std::move(blocks_);
}

} // namespace zc::migrate
