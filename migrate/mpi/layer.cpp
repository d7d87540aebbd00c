/* SPDX-License-Identifier: BSD-3-Clause */
#include "layer.h"

#include <algorithm>
#include <utility>

#include "fatal_errors.h"
#include "named_types.h"
#include "process.h"
#include "recorder.h"
#include "remaking.h"

namespace zc::migrate {

namespace {

std::uint64_t mixed(std::uint64_t a, std::uint64_t b)
{
    std::uint64_t x = a + 0x9e3779b97f4a7c15u + (b ^ b >> 31) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

std::uint64_t mixed(const members &all)
{
    std::uint64_t sum = all.size();
    for (int one : all)
        sum = mixed(sum, static_cast<std::uint64_t>(one));
    return sum;
}

} // namespace

bool communicator::has_strangers() const noexcept
{
    const auto is_one = [](int who) { return who < 0; };
    return std::ranges::any_of(*local, is_one) || (inter && std::ranges::any_of(*remote, is_one));
}

void communicator::reset()
{
    real.store(MPI_COMM_NULL);
    handle = MPI_COMM_NULL;
    id = children = 0;
    inter = false;
    rank = 0;
    local.reset();
    remote.reset();
    peers_kept = false;
    children_of_some.clear();
    attributes.clear();
    on_error = nullptr;
    awaited_handler = MPI_ERRHANDLER_NULL;
    destinations.reset();
}

void layer::observe()
{
    if (!instance_)
        instance_ = new layer;
    named_types::open();
    mode_ = mode::observing;
}

void layer::open(int rank, int size)
{
    if (!instance_)
        instance_ = new layer;
    named_types::open();
    layer &one = *instance_;
    int threads = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&threads);
    if (threads == MPI_THREAD_MULTIPLE) {
        one.communicators_.threads();
        one.groups_.threads();
    }
    members all(static_cast<std::size_t>(size));
    for (int i = 0; i < size; i++)
        all[static_cast<std::size_t>(i)] = i;
    one.world_.handle = MPI_COMM_WORLD;
    one.world_.id = 1;
    one.world_.rank = rank;
    one.world_.local = std::make_shared<const members>(std::move(all));
    one.self_.handle = one.self_.real = MPI_COMM_SELF;
    one.self_.id = mixed(2, static_cast<std::uint64_t>(rank));
    one.self_.local = std::make_shared<const members>(1, rank);
    fatal_errors::open(rank);
    mode_ = mode::on;
}

void layer::close()
{
    fatal_errors::close();
    mode_ = mode::off;
}

void layer::link(MPI_Comm world)
{
    world_.real = world;
    if (is_on()) {
        PMPI_Comm_set_name(world, "MPI_COMM_WORLD");
        PMPI_Comm_set_errhandler(world, fatal_errors::real(MPI_ERRORS_ARE_FATAL));
    }
    processes_.link(world);
}

MPI_Comm layer::handle_of_real(MPI_Comm real) const
{
    MPI_Comm found = real == world_.real.load() || real == MPI_COMM_WORLD ? MPI_COMM_WORLD : real;
    communicators_.for_each([&](std::uint32_t, const communicator &one) {
        if (one.real.load(std::memory_order_relaxed) == real)
            found = one.handle;
    });
    return found;
}

/**
 * The same name in all processes of the new communicator, without asking them: those of the parent
 * make its children in the same order; of those that are made by some of them alone the same group
 * makes those with the same tag in the same order.
 */
void layer::name(communicator &fresh, const origin &how)
{
    const std::uint64_t one = mixed(*fresh.local), other = fresh.inter ? mixed(*fresh.remote) : 0;
    const std::uint64_t who = mixed(std::min(one, other), std::max(one, other));
    if (how.by_all && how.parent) {
        fresh.id = mixed(mixed(how.parent->id, how.parent->children), who);
        return;
    }
    const std::lock_guard guard(mutex_);
    const std::uint64_t what = mixed(who, how.salt);
    /* Of an intercommunicator the two sides need have no communicator in common that both know. */
    auto &made = how.parent && !fresh.inter ? how.parent->children_of_some : meetings_;
    const std::uint64_t parent = how.parent && !fresh.inter ? how.parent->id : 0;
    fresh.id = mixed(mixed(parent, what), ++made[what]);
}

MPI_Comm layer::adopt(MPI_Comm real, const origin &how)
{
    if (!is_on())
        return real;
    if (how.by_all && how.parent)
        how.parent->children++;
    if (real == MPI_COMM_NULL)
        return real;
    const std::uint32_t number = communicators_.take();
    if (!number)
        end_job(world_.rank, "more than 65,535 communicators at once");
    communicator &fresh = *communicators_.find(number);
    int inter = 0;
    PMPI_Comm_test_inter(real, &inter);
    PMPI_Comm_rank(real, &fresh.rank);
    fresh.inter = inter;
    fresh.local = std::make_shared<const members>(processes_.of(real, false));
    if (inter)
        fresh.remote = std::make_shared<const members>(processes_.of(real, true));
    fresh.on_error = how.parent ? how.parent->on_error : nullptr;
    name(fresh, how);
    fresh.real = real;
    fresh.handle = comm_handle::make(number);
    return fresh.handle;
}

MPI_Comm layer::adopt_copy(MPI_Comm parent)
{
    communicator &of = *find(parent);
    const std::uint32_t number = communicators_.take();
    if (!number)
        end_job(world_.rank, "more than 65,535 communicators at once");
    communicator &fresh = *communicators_.find(number);
    of.children++;
    fresh.inter = of.inter;
    fresh.rank = of.rank;
    fresh.local = of.local;
    fresh.remote = of.remote;
    fresh.on_error = of.on_error;
    name(fresh, {&of, true});
    fresh.handle = comm_handle::make(number);
    return fresh.handle;
}

MPI_Group layer::make_group(members who)
{
    if (who.empty())
        return MPI_GROUP_EMPTY;
    MPI_Group made = MPI_GROUP_NULL;
    recorder::call(
        "~group", [&] { return std::vector{static_cast<std::int64_t>(mixed(who))}; },
        [&] {
            const std::uint32_t number = groups_.take();
            if (!number)
                end_job(world_.rank, "more than 1,048,575 groups at once");
            made = group_handle::make(number);
            return int{MPI_SUCCESS};
        },
        [&](recorder::visitor &with) { with.group_(&made); });
    const std::uint32_t number = group_handle::number(made);
    if (!groups_.find(number) && !groups_.take(number))
        end_job(world_.rank, "a group of the predecessor has the number of another one");
    groups_.find(number)->who = std::move(who);
    return made;
}

std::map<std::int64_t, members> layer::all_groups() const
{
    std::map<std::int64_t, members> all;
    groups_.for_each([&](std::uint32_t number, const group &one) {
        all[value_of(group_handle::make(number))] = one.who;
    });
    return all;
}

void layer::restore_groups(const std::map<std::int64_t, members> &all)
{
    for (const auto &[handle, who] : all) {
        const std::uint32_t number = group_handle::number(handle_of<MPI_Group>(handle));
        if (groups_.find(number) || groups_.take(number))
            groups_.find(number)->who = who;
    }
}

void layer::keep(const std::vector<communicator_record> &all)
{
    std::vector<std::uint32_t> gone;
    communicators_.for_each([&](std::uint32_t number, const communicator &one) {
        if (std::ranges::find(all, value_of(one.handle), &communicator_record::handle) == all.end())
            gone.push_back(number);
    });
    for (std::uint32_t number : gone)
        communicators_.give_back(number);
}

std::int64_t layer::sum_of(MPI_Group handle)
{
    const group *one = find_group(handle);
    return one ? static_cast<std::int64_t>(mixed(one->who)) : 0;
}

MPI_Group layer::adopt_group(MPI_Group real)
{
    if (!is_on() || real == MPI_GROUP_NULL)
        return real;
    members who = processes_.of(real);
    PMPI_Group_free(&real);
    return make_group(std::move(who));
}

communicator &layer::restore(const communicator_record &told)
{
    const MPI_Comm handle = handle_of<MPI_Comm>(told.handle);
    communicator *one = find(handle);
    if (!one) {
        const std::uint32_t number = comm_handle::number(handle);
        if (!comm_handle::is_virtual(handle) || !communicators_.take(number))
            end_job(world_.rank, "a communicator of the predecessor has the number of another one");
        one = communicators_.find(number);
        one->handle = handle;
    }
    one->id = told.id;
    one->inter = told.inter;
    one->rank = told.rank;
    one->local = std::make_shared<const members>(told.local);
    one->remote = told.inter ? std::make_shared<const members>(told.remote) : nullptr;
    one->peers_kept = false;
    one->children = told.children;
    one->children_of_some = told.children_of_some;
    return *one;
}

void layer::free(communicator &one)
{
    communicators_.give_back(comm_handle::number(one.handle));
}

int layer::copy_attributes(communicator &from, communicator &to)
{
    for (const attribute &one : std::vector(from.attributes)) {
        void *value = nullptr;
        int keeps = 0;
        if (const int code = one.kind->call_copy(from.handle, one.key, one.value, &value, &keeps);
            code != MPI_SUCCESS)
            return code;
        if (keeps)
            to.attributes.push_back({one.key, one.kind, value, is_computing()});
    }
    return MPI_SUCCESS;
}

int layer::delete_attributes(communicator &of)
{
    /* The last one set is the first to go, as MPI has it for MPI_COMM_SELF. */
    while (!of.attributes.empty()) {
        const attribute one = of.attributes.back();
        if (const int code = one.kind->call_remove(of.handle, one.key, one.value);
            code != MPI_SUCCESS)
            return code;
        std::erase_if(of.attributes, [&](const attribute &each) { return each.kind == one.kind; });
    }
    return MPI_SUCCESS;
}

/* ---- groups for MPI ---- */

real_group::real_group(MPI_Group handle, MPI_Comm in) : made_(handle)
{
    const group *which = layer::find_group(handle);
    const communicator *where = layer::find(in);
    if (!which || !where)
        return;
    made_ = processes::group(which->who, where->real.load(), *where->local);
    is_ours_ = true;
}

real_group::real_group(MPI_Group handle) : made_(handle)
{
    const group *which = layer::find_group(handle);
    if (!which)
        return;
    made_ = layer::instance().everyone().group(which->who);
    is_ours_ = made_ != MPI_GROUP_NULL;
}

real_group::~real_group()
{
    if (is_ours_)
        PMPI_Group_free(&made_);
}

} // namespace zc::migrate
