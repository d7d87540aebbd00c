/* SPDX-License-Identifier: BSD-3-Clause */
#include "standby.h"

#include <nlohmann/json.hpp>

#include "error.h"
#include "understood.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr double kCall = 10; /* seconds for a leaver, which waits for it */

} // namespace

standby::standby(const std::vector<control::request::target> &moves)
{
    for (const control::request::target &what : moves)
        all_.push_back(std::make_unique<one>(what));
}

void standby::start(const start_order &order, launch_request &by, double limit_s,
                    const std::function<void()> &rest)
{
    std::vector<std::string> invitations;
    for (const auto &each : all_)
        invitations.push_back(each->start.invitation());
    const auto attempt = [this](const one &of, auto step) {
        try {
            return step();
        } catch (const error &) {
            failed_on_ = of.what.host;
            throw;
        }
    };
    for (const auto &each : all_)
        attempt(*each, [&] { each->start.begin(invitations, order, &by, limit_s); });
    for (bool all = false; !all; rest()) {
        all = true;
        for (const auto &each : all_)
            all = attempt(*each, [&] { return each->start.step(); }) && all;
        if (all)
            break;
    }
    for (const auto &each : all_)
        each->started = each->start.take();
}

std::vector<standby::report> standby::reports() const
{
    std::vector<report> all;
    for (const auto &each : all_)
        all.push_back({each->what.host, each->started.facts});
    return all;
}

void standby::introduce(const std::vector<std::string> &invitations, int own_rank)
{
    for (const auto &each : all_) {
        const std::string &text = invitations.at(static_cast<std::size_t>(each->what.rank));
        if (text.empty())
            continue;
        const auto card = understood("an invitation", text, [](const json &object) {
            return object.at("card").get<std::string>();
        });
        wire &launcher = *each->started.launcher;
        while (launcher.poll()) /* the new leaver is told that, too */
            continue;
        if (!launcher.is_closed())
            launcher.send({{"leaver", card}});
        else if (each->what.rank == own_rank)
            throw error(EIO, "the launcher on " + each->what.host + " has ended");
        else /* in its stead, so that the leaver does not wait for it */
            call(calling_card::from_text(card), "successor", kCall);
    }
}

} // namespace zc::migrate
