/* SPDX-License-Identifier: BSD-3-Clause */
#include "standby.h"

#include <chrono>
#include <future>
#include <map>
#include <nlohmann/json.hpp>

#include "clock.h"
#include "error.h"
#include "quiet_thread.h"
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
        all.push_back({each->what.rank, each->what.host, each->started.facts});
    return all;
}

namespace {

/** What a call of a leaver blocks for, a thread of its own does: the leaver may be stopped. */
class calls {
  public:
    /** The launcher of its successor has ended: the leaver is called in its stead, so that it does
     * not wait for that. */
    void begin(const std::string &card)
    {
        const blocked_signals meanwhile; /* as quiet_thread() has it */
        all_.push_back(std::async(std::launch::async, [card] {
            call(calling_card::from_text(card), "successor", kCall);
        }));
    }
    void await(const std::function<void()> &rest)
    {
        for (const std::future<void> &one : all_)
            while (one.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
                rest();
        for (std::future<void> &one : all_)
            try {
                one.get();
            } catch (const error &) {
                /* The launcher has called it before; or it finds out itself, in its time. */
            }
    }

  private:
    std::vector<std::future<void>> all_;
};

} // namespace

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
    calls in_stead;
    for (const double since = seconds(); !awaited.empty() && seconds() - since < kCall; rest())
        std::erase_if(awaited, [&in_stead](const auto &of) {
            wire &launcher = *of.first->started.launcher;
            while (const auto said = launcher.poll())
                if (said->contains("introduced"))
                    return true;
            if (launcher.is_closed())
                in_stead.begin(of.second);
            return launcher.is_closed();
        });
    in_stead.await(rest);
    /* This process can be called when it is done here. */
    for (const auto &each : all_)
        if (each->what.rank == own_rank)
            begin(*each);
}

} // namespace zc::migrate
