/* SPDX-License-Identifier: BSD-3-Clause */
#include "zcm/zcm.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <unistd.h>
#include <vector>

#include "error.h"
#include "identity.h"
#include "job.h"
#include "process.h"
#include "profiler.h"

using namespace zc::migrate;
using zc::error;

namespace {

/* One job per process, as there is one MPI. Empty while switched off. */
std::unique_ptr<job> current;
bool initialised = false, finalised = false;
/* ZC_MIGRATE=observe: the program runs as if switched off, but its agents are told. */
bool observing = false;
std::int64_t observed_points = 0;

void observe(const settings &chosen)
{
    const quiet ours;
    int rank = 0, size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    profiler::identity who{zc::draw_identity(), chosen.job, 0};
    MPI_Bcast(&who.job, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (who.name.empty())
        who.name = host_name() + "-" + std::to_string(getpid());
    share(MPI_COMM_WORLD, 0, who.name);
    std::vector<std::array<char, 128>> names(static_cast<std::size_t>(size));
    std::array<char, 128> mine{};
    host_name().copy(mine.data(), mine.size() - 1);
    MPI_Allgather(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, names.data(),
                  static_cast<int>(mine.size()), MPI_CHAR, MPI_COMM_WORLD);
    profiler &told = profiler::instance();
    told.open(who, rank, size, ZCM_PROFILE_MOVABLE | ZCM_PROFILE_OBSERVE);
    told.link(MPI_COMM_WORLD);
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

element element_of(MPI_Datatype type, const char *name)
{
    struct pair {
        MPI_Datatype type;
        element kind;
    };
    const auto of_size = [](std::size_t size, bool is_signed) {
        switch (size) {
        case 1:
            return is_signed ? element::i8 : element::u8;
        case 2:
            return is_signed ? element::i16 : element::u16;
        case 4:
            return is_signed ? element::i32 : element::u32;
        default:
            return is_signed ? element::i64 : element::u64;
        }
    };
    const pair known[] = {
        {MPI_BYTE, element::byte},
        {MPI_DOUBLE, element::f64},
        {MPI_FLOAT, element::f32},
        {MPI_INT, of_size(sizeof(int), true)},
        {MPI_LONG, of_size(sizeof(long), true)},
        {MPI_LONG_LONG, element::i64},
        {MPI_SHORT, of_size(sizeof(short), true)},
        {MPI_CHAR, element::i8},
        {MPI_SIGNED_CHAR, element::i8},
        {MPI_UNSIGNED_CHAR, element::u8},
        {MPI_UNSIGNED_SHORT, of_size(sizeof(unsigned short), false)},
        {MPI_UNSIGNED, of_size(sizeof(unsigned), false)},
        {MPI_UNSIGNED_LONG, of_size(sizeof(unsigned long), false)},
        {MPI_UNSIGNED_LONG_LONG, element::u64},
        {MPI_INT8_T, element::i8},
        {MPI_INT16_T, element::i16},
        {MPI_INT32_T, element::i32},
        {MPI_INT64_T, element::i64},
        {MPI_UINT8_T, element::u8},
        {MPI_UINT16_T, element::u16},
        {MPI_UINT32_T, element::u32},
        {MPI_UINT64_T, element::u64},
        {MPI_C_BOOL, element::u8},
        {MPI_AINT, of_size(sizeof(MPI_Aint), true)},
        {MPI_OFFSET, of_size(sizeof(MPI_Offset), true)},
        {MPI_COUNT, of_size(sizeof(MPI_Count), true)},
    };
    for (const pair &one : known)
        if (one.type == type)
            return one.kind;
    throw error(ENOTSUP,
                std::string("type of '") + name + "' is not a basic type of C that we know");
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

} // namespace

int zcm_init(int *, char ***) noexcept
{
    if (initialised)
        return -EALREADY;
    return guarded([] {
        int up = 0, down = 0;
        MPI_Initialized(&up);
        MPI_Finalized(&down);
        if (!up || down)
            throw error(EINVAL, "zcm_init() before MPI_Init() or after MPI_Finalize()");
        settings chosen = settings::from_environment();
        if (chosen.observe)
            observe(chosen);
        if (chosen.on) {
            const quiet ours;
            current = std::make_unique<job>(std::move(chosen));
            try {
                current->start();
            } catch (...) {
                current.reset();
                throw;
            }
        }
        initialised = true;
    });
}

int zcm_register(const char *name, void *addr, size_t count, MPI_Datatype type) noexcept
{
    return guarded([&] {
        require_initialised();
        if (!name)
            throw error(EINVAL, "registered data without a name");
        const quiet ours;
        const array &added = data().add(name, addr, count, element_of(type, name));
        profiler::instance().image(data().bytes());
        if (!current)
            return;
        try {
            current->restored(added);
        } catch (...) {
            data().remove(name);
            throw;
        }
    });
}

int zcm_reregister(const char *name, void *addr, size_t count) noexcept
{
    return guarded([&] {
        require_initialised();
        data().replace(name ? name : "", addr, count);
        profiler::instance().image(data().bytes());
    });
}

int zcm_unregister(const char *name) noexcept
{
    return guarded([&] {
        require_initialised();
        data().remove(name ? name : "");
        profiler::instance().image(data().bytes());
    });
}

int zcm_on_rebuild(zcm_world_fn release, zcm_world_fn rebuild, void *arg) noexcept
{
    return guarded([&] {
        require_initialised();
        if (!current)
            return;
        current->release = release;
        current->rebuild = rebuild;
        current->argument = arg;
    });
}

int zcm_safe_point(void) noexcept
{
    if (!current) [[likely]] {
        if (observing)
            profiler::instance().point(++observed_points);
        return initialised ? 0 : -EINVAL;
    }
    return guarded([] { current->safe_point(); });
}

MPI_Comm zcm_world(void) noexcept
{
    return current ? current->user_world() : MPI_COMM_WORLD;
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
        current.reset();
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
