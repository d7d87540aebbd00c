/* SPDX-License-Identifier: BSD-3-Clause */
#include "program_functions.h"

#include <cstdio>
#include <optional>

#include "layer.h"
#include "process.h"
#include "watchdog.h"

namespace zc::migrate {

void program_functions::set_save(save_fn fn, void *argument)
{
    save_ = fn;
    save_argument_ = argument;
}

void program_functions::set_rebuild(world_fn release, world_fn rebuild, void *argument)
{
    release_ = release;
    rebuild_ = rebuild;
    argument_ = argument;
}

bool program_functions::has(kind what) const noexcept
{
    switch (what) {
    case kind::save:
        return save_ != nullptr;
    case kind::release:
        return release_ != nullptr;
    case kind::rebuild:
        return rebuild_ != nullptr;
    }
    return false;
}

const char *program_functions::name_of(kind what) noexcept
{
    switch (what) {
    case kind::save:
        return "the program's function of zcm_on_save()";
    case kind::release:
        return "the program's function 'release' of zcm_on_rebuild()";
    case kind::rebuild:
        break;
    }
    return "the program's function 'rebuild' of zcm_on_rebuild()";
}

int program_functions::call_now(kind what)
{
    switch (what) {
    case kind::save:
        return save_(save_argument_);
    case kind::release:
        release_(MPI_COMM_WORLD, argument_);
        break;
    case kind::rebuild:
        layer::set_activity(layer::activity::rebuilding);
        rebuild_(MPI_COMM_WORLD, argument_);
        layer::set_activity(layer::activity::computing);
        break;
    }
    return 0;
}

int program_functions::call(kind what, int rank, const char *then,
                            const std::function<void()> &late)
{
    if (!has(what))
        return 0;
    bool &said = said_[static_cast<int>(what)];
    const auto tell = [&] {
        char text[192];
        std::snprintf(text, sizeof text, "%s has not returned for %g s (ZC_MIGRATE_CALLBACK): %s",
                      name_of(what), limit_s_, then);
        if (!said)
            complain(rank, text);
        said = true;
        if (late)
            late();
    };
    std::optional<watchdog> guard;
    try {
        guard.emplace(limit_s_, tell);
    } catch (const std::exception &) {
        guard.reset(); /* no memory for a thread: nobody tells if it does not return */
    }
    return call_now(what);
}

} // namespace zc::migrate
