/* SPDX-License-Identifier: BSD-3-Clause */
#include "standby.h"

#include <map>
#include <nlohmann/json.hpp>

#include "clock.h"
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

/** Its launcher has ended: the leaver is called in its stead, so that it does not wait for that. */
void standby::call_leaver(const std::string &card)
{
    call(calling_card::from_text(card), "successor", kCall);
}

void standby::introduce(const std::vector<std::string> &invitations, int own_rank,
                        const std::function<void()> &rest)
{
    std::map<one *, std::string> awaited; /* cards of those who are being called */
    const auto begin = [&](one &it) {
        const std::string &text = invitations.at(static_cast<std::size_t>(it.what.rank));
        if (text.empty())
            return;
        const auto card = understood("an invitation", text, [](const json &object) {
            return object.at("card").get<std::string>();
        });
        it.started.launcher->send({{"leaver", card}});
        if (it.what.rank != own_rank)
            awaited[&it] = card;
    };
    for (const auto &each : all_)
        if (each->what.rank != own_rank)
            begin(*each);
    for (const double since = seconds(); !awaited.empty() && seconds() - since < kCall; rest())
        std::erase_if(awaited, [](const auto &of) {
            wire &launcher = *of.first->started.launcher;
            while (const auto said = launcher.poll())
                if (said->contains("introduced"))
                    return true;
            if (launcher.is_closed())
                call_leaver(of.second);
            return launcher.is_closed();
        });
    /* This process can be called when it is done here. */
    for (const auto &each : all_)
        if (each->what.rank == own_rank)
            begin(*each);
}

} // namespace zc::migrate
