/* SPDX-License-Identifier: BSD-3-Clause */
#include "zcm/zcm.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

#include "datatype.h"
#include "error.h"
#include "identity.h"
#include "job.h"
#include "layer.h"
#include "lifetime.h"
#include "process.h"
#include "profiler.h"

using namespace zc::migrate;
using zc::error;
using zc::host_name;

namespace {

/* One job per process, as there is one MPI. Empty while switched off. */
std::unique_ptr<job> current;
bool started = false; /* PMPI_Init() has been seen */
int outcome = 0;      /* of the start, for zcm_init() */
bool initialised = false, finalised = false;
/* ZC_MIGRATE=observe: the program runs as if switched off, but its agents are told. */
bool observing = false;
std::int64_t observed_points = 0;

void observe(const settings &chosen)
{
    int rank = 0, size = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    profiler::identity who{zc::draw_identity(), chosen.job, 0};
    PMPI_Bcast(&who.job, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (who.name.empty())
        who.name = host_name() + "-" + std::to_string(getpid());
    share(MPI_COMM_WORLD, 0, who.name);
    std::vector<std::array<char, 128>> names(static_cast<std::size_t>(size));
    std::array<char, 128> mine{};
    host_name().copy(mine.data(), mine.size() - 1);
    PMPI_Allgather(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, names.data(),
                   static_cast<int>(mine.size()), MPI_CHAR, MPI_COMM_WORLD);
    layer::observe();
    layer::instance().link(MPI_COMM_WORLD);
    profiler &told = profiler::instance();
    told.open(who, rank, size, ZCM_PROFILE_MOVABLE | ZCM_PROFILE_OBSERVE);
    std::vector<std::string> hosts;
    for (const auto &name : names)
        hosts.emplace_back(name.data());
    told.place(1, hosts);
    observing = true;
}

/* What an error says is printed here, unless it has been where it was found. */
template <typename Action>
int guarded(Action action) noexcept
{
    try {
        action();
        return 0;
    } catch (const reported_error &problem) {
        return -problem.code();
    } catch (const error &problem) {
        complain(current ? current->rank() : -1, problem.what());
        return -problem.code();
    } catch (const std::bad_alloc &) {
        complain(-1, "out of memory");
        return -ENOMEM;
    } catch (const std::exception &problem) {
        complain(-1, problem.what());
        return -EIO;
    }
}

void require_initialised()
{
    if (!initialised || finalised)
        throw error(EINVAL, "used before zcm_init() or after zcm_finalize()");
}

/* With the switch off data is still checked, so that mistakes show early. */
registry &data()
{
    static registry off;
    return current ? current->data : off;
}

/* Those who decide on a move learn how large the state is. */
void tell_size()
{
    profiler::instance().image(data().bytes());
    if (current)
        current->data_has_changed();
}

} // namespace

namespace zc::migrate {

void start_job() noexcept
{
    started = true;
    outcome = guarded([] {
        MPI_Comm parent = MPI_COMM_NULL;
        PMPI_Comm_get_parent(&parent);
        if (parent != MPI_COMM_NULL && !std::getenv("ZC_MIGRATE_SUCCESSOR"))
            return; /* spawned by the program: no rank of the job */
        settings chosen = settings::from_environment();
        if (chosen.observe)
            observe(chosen);
        if (!chosen.on)
            return;
        current = std::make_unique<job>(std::move(chosen));
        try {
            current->start();
        } catch (...) {
            current.reset();
            throw;
        }
    });
}

void leave_job() noexcept
{
    if (!finalised) {
        initialised = true;
        zcm_finalize();
    }
    if (layer::is_on())
        layer::instance().delete_attributes(layer::instance().self());
    if (current)
        current->leave_world();
    layer::close();
    current.reset();
}

void abort_job(int code) noexcept
{
    if (current)
        current->abort(code);
}

} // namespace zc::migrate

int zcm_init(int *, char ***) noexcept
{
    if (initialised)
        return -EALREADY;
    const int code = guarded([] {
        int up = 0, down = 0;
        PMPI_Initialized(&up);
        PMPI_Finalized(&down);
        if (!up || down)
            throw error(EINVAL, "zcm_init() before MPI_Init() or after MPI_Finalize()");
        if (outcome != 0)
            throw reported_error(-outcome);
        const settings chosen = settings::from_environment();
        if (!started && (chosen.on || chosen.observe))
            throw error(EINVAL, "MPI_Init() was not that of libzcm: the program has to be linked "
                                "with it before the MPI library");
    });
    initialised = code == 0;
    return code;
}

int zcm_register(const char *name, void *addr, size_t count, MPI_Datatype type) noexcept
{
    return guarded([&] {
        require_initialised();
        if (!name)
            throw error(EINVAL, "registered data without a name");
        if (std::string_view(name).starts_with(kOwnNames))
            throw error(EINVAL,
                        std::string("names that begin with 'zcm:' are libzcm's: '") + name + "'");
        array wanted{name, static_cast<std::byte *>(addr), count};
        set_type(wanted, type);
        const array &added = data().add(std::move(wanted));
        tell_size();
        if (!current)
            return;
        try {
            current->restored(added);
        } catch (...) {
            data().remove(name);
            tell_size();
            throw;
        }
    });
}

int zcm_reregister(const char *name, void *addr, size_t count) noexcept
{
    return guarded([&] {
        require_initialised();
        data().replace(name ? name : "", addr, count);
        tell_size();
    });
}

int zcm_unregister(const char *name) noexcept
{
    return guarded([&] {
        require_initialised();
        data().remove(name ? name : "");
        tell_size();
    });
}

int zcm_on_save(zcm_save_fn fn, void *arg) noexcept
{
    return guarded([&] {
        require_initialised();
        if (!current)
            return;
        current->functions.set_save(fn, arg);
        current->data_has_changed();
    });
}

long long zcm_saved_count(const char *name) noexcept
{
    long long count = -ENOENT;
    const int code = guarded([&] {
        require_initialised();
        if (!name)
            throw error(EINVAL, "saved data without a name");
        if (const auto saved = current ? current->saved_count(name) : std::nullopt)
            count = static_cast<long long>(*saved);
    });
    return code ? code : count;
}

const char *zcm_saved_name(size_t index) noexcept
{
    const char *name = nullptr;
    guarded([&] {
        require_initialised();
        if (current)
            name = current->saved_name(index);
    });
    return name;
}

int zcm_on_rebuild(zcm_world_fn release, zcm_world_fn rebuild, void *arg) noexcept
{
    return guarded([&] {
        require_initialised();
        if (!current)
            return;
        current->functions.set_rebuild(release, rebuild, arg);
    });
}

int zcm_safe_point(void) noexcept
{
    if (!current) [[likely]] {
        if (observing)
            profiler::instance().point(++observed_points);
        return initialised ? 0 : -EINVAL;
    }
    if (!initialised) [[unlikely]]
        return -EINVAL;
    return guarded([] { current->safe_point(); });
}

MPI_Comm zcm_world(void) noexcept
{
    return MPI_COMM_WORLD;
}

int zcm_resumed(void) noexcept
{
    return current && current->is_resumed();
}

int zcm_total_safe_points(long long total) noexcept
{
    return guarded([&] {
        require_initialised();
        if (total < 0)
            throw error(EINVAL, "a negative number of safe points: " + std::to_string(total));
        profiler::instance().total(static_cast<std::uint64_t>(total));
    });
}

int zcm_checkpoint(void) noexcept
{
    return guarded([] {
        require_initialised();
        if (!current)
            throw error(ENOTSUP, "no checkpoint without ZC_MIGRATE=1");
        current->request_checkpoint();
    });
}

int zcm_finalize(void) noexcept
{
    return guarded([] {
        require_initialised();
        finalised = true;
        if (observing) {
            profiler::instance().close();
            observing = false;
        }
        if (!current)
            return;
        const std::string problem = current->finish();
        if (!problem.empty())
            throw reported_error(EIO);
    });
}

const char *zcm_strerror(int code) noexcept
{
    switch (-code) {
    case 0:
        return "success";
    case EALREADY:
        return "already initialised";
    case EINVAL:
        return "bad argument, or used at the wrong time";
    case EEXIST:
        return "name or memory is registered already";
    case ENOENT:
        return "no data of that name";
    case ENOTSUP:
        return "not supported, or migration is switched off";
    case EBADMSG:
        return "saved data does not fit or is damaged";
    case EPIPE:
        return "the other process is gone";
    case EBUSY:
        return "another request is under way";
    case EFAULT:
        return "registered memory is not mapped";
    case EIO:
        return "input, output or linking up failed";
    case ENOMEM:
        return "out of memory";
    default:
        return "unknown error";
    }
}
