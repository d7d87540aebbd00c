/* SPDX-License-Identifier: BSD-3-Clause */
#include "job_in_move.h"

#include <cerrno>
#include <set>

#include "error.h"
#include "job.h"
#include "layer.h"
#include "memory_room.h"
#include "process.h"
#include "profiler.h"
#include "recorder.h"
#include "requests.h"
#include "watchdog.h"

namespace zc::migrate {

job_in_move::job_in_move(job &of, const control::request &wanted, const move_plan &how)
    : job_(of), wanted_(wanted), how_(how), together_(of.now_.ours)
{
    hello_.others_run = how.others_run;
    hello_.moved = true;
    hello_.rank = of.now_.rank;
    hello_.ranks = of.now_.size;
    hello_.index = -1;
    hello_.safe_points = of.safe_points_.load();
    hello_.requests = of.agreement_.requests();
    hello_.job = of.name_;
    hello_.identity = of.identity_;
    hello_.line = of.line_;
    hello_.moves = of.moves_ + 1;
    hello_.late_functions = of.late_functions_;
    hello_.age_s = seconds() - of.begun_;
    hello_.hosts = of.hosts_;
    hello_.allowed = of.allowed_;
    hello_.program = of.control_.own().program;
    if (of.settings_.fault_injected(fault::other_build_late))
        hello_.program = "another";
    hello_.library = of.control_.own().library;
    hello_.features = of.control_.features();
    hello_.layer = bequest::of_this_process().to_text();
    hello_.record = recorder::instance().bytes().size();
    for (const control::request::target &one : wanted.moves) {
        if (one.rank == of.now_.rank) {
            hello_.index = static_cast<int>(hello_.leavers.size());
            target_ = {one.host, !of.hosts_.contains(one.host)};
        }
        hello_.leavers.push_back(one.rank);
    }
}

int job_in_move::rank() const noexcept
{
    return job_.now_.rank;
}

std::string job_in_move::agree(const std::string &complaint)
{
    return migrate::agree(job_.now_.ours, complaint);
}

std::vector<double> job_in_move::greatest(std::vector<double> values)
{
    return migrate::greatest(together_, std::move(values));
}

std::vector<double> job_in_move::total(std::vector<double> values)
{
    return migrate::total(together_, std::move(values));
}

std::vector<std::string> job_in_move::gather(const std::string &text)
{
    return migrate::gather(job_.now_.ours, text);
}

std::string job_in_move::invite()
{
    job_.join_writer();
    job_.require_current();
    for (const auto &[name, one] : job_.data.all())
        data_.add(one);
    const std::vector<std::byte> &record = recorder::instance().bytes();
    if (!record.empty())
        data_.add(kRecordName, const_cast<std::byte *>(record.data()), record.size(),
                  element::byte);
    /* Of one image both sides have all at once, beside the data. */
    const bool whole = wanted_.via == control::request::way::image;
    if (whole)
        require_room_for_images();
    hello_.bytes = (whole ? 2 : 1) * data_.bytes();
    succession_ = std::make_unique<succession>(job_.settings_, job_.command_, job_.starter(),
                                               target_, how_.successors_stand_by);
    return succession_->invite(hello_.bytes);
}

/** Memory is reserved without the kernel asking whether there is any, and it would end a process
 * when it is written. Others that leave this host are taken to be as large as this one; a rank that
 * moves on its own host has its successor's copies there, too. */
void job_in_move::require_room_for_images() const
{
    std::uint64_t images = 0;
    for (const control::request::target &one : wanted_.moves)
        if (job_.homes_[static_cast<std::size_t>(one.rank)] == host_name())
            images += one.host == host_name() ? 3 : 1;
    if (images * data_.bytes() > memory_room() || job_.settings_.fault_injected(fault::no_room))
        throw error(ENOMEM, "host " + host_name() + " has no memory for whole images of its ranks");
}

void job_in_move::introduce(const std::vector<std::string> &all)
{
    const auto &request = job_.control_.taken();
    if (!request || !request->successors)
        return;
    pause pause;
    request->successors->introduce(all, job_.now_.rank, [&pause] {
        migrate::make_progress();
        pause.rest();
    });
}

std::unique_ptr<departure> job_in_move::start_successor(const std::vector<std::string> &all)
{
    /* The successor may open a file where it ends: Fortran's position='append' looks for that only
     * once, and the program opens its files before it comes to the safe point. */
    flush_all_output();
    return succession_->start(all, hello_);
}

const registry &job_in_move::data() const noexcept
{
    return data_;
}

image_header job_in_move::header() const
{
    return job_.header();
}

void job_in_move::outcome(const std::string &text)
{
    job_.meeting_.outcome(text);
}

double job_in_move::asked() const noexcept
{
    return job_.control_.asked();
}

double job_in_move::examined() const noexcept
{
    return job_.control_.examined();
}

void job_in_move::let_go()
{
    job_.lock_.reset();   /* of rank 0: its successor takes it when it saves */
    (void)flush_output(); /* what the successor writes comes after it */
}

void job_in_move::link_up(departure *mine)
{
    growth how;
    how.old = &job_.now_;
    how.leavers = hello_.leavers;
    how.index = hello_.index;
    how.rank = job_.now_.rank;
    how.size = job_.now_.size;
    next_ = job_.link_up(how, mine ? &mine->line() : nullptr);
}

void job_in_move::release()
{
    if (!target_.name.empty())
        profiler::instance().close();
}

void job_in_move::give_up_old_world()
{
    /* The program of any rank may have taken its time to release what it has. */
    migrate::agree(job_.now_.ours, "");
    const double limit_s = job_.settings_.world_s;
    const watchdog guard(limit_s, "the move was agreed on, but the old world was not given up " +
                                      job::missed(limit_s, "ZC_MIGRATE_WORLD"));
    job_.roll_.reset();
    job_.agreement_.close();
    communicators_ = remaking::capture();
    requests::instance().release_persistent();
    remaking::release();
    if (how_.others_run) {
        /* They have to agree on how it went when that world is no more. */
        std::set<int> telling(hello_.leavers.begin(), hello_.leavers.end());
        telling.insert(0);
        together_ = telling.contains(job_.now_.rank)
                        ? part_of(job_.now_.ours, {telling.begin(), telling.end()})
                        : MPI_COMM_NULL;
    }
    job_.now_.disconnect();
}

void job_in_move::enter_new_world()
{
    const watchdog guard = job_.limit_entry(false);
    job_.now_ = next_;
    job_.moves_++;
    for (const control::request::target &one : wanted_.moves)
        job_.homes_[static_cast<std::size_t>(one.rank)] = one.host;
    layer::instance().link(job_.now_.user);
    remaking::install(communicators_, remaking::make(communicators_, job_.now_.ours));
    requests::instance().make_persistent();
    job_.open_agreement(hello_.requests);
    job_.ask_who_rebuilds();
    job_.meeting_.settle();
}

std::vector<double> job_in_move::rebuild_world(double begin)
{
    return job_.rebuild_world(begin, how_.others_run);
}

void job_in_move::part()
{
    if (how_.others_run)
        migrate::part(together_);
}

void job_in_move::report_later(std::function<std::string(const effort_of_all &)> text)
{
    job_.report_ = std::make_unique<late_report>(together_, std::move(text));
    job_.calm_left_ = job_.calm_ = 1;
}

void job_in_move::close_door()
{
    job_.control_.close_door("rank 0 has moved: ask again");
}

void job_in_move::close_socket()
{
    job_.control_.close();
}

void job_in_move::leave()
{
    end_progress();
    PMPI_Finalize();
    leave_process(leaving::moved);
}

void job_in_move::end_job(const std::string &why)
{
    migrate::end_job(job_.now_.rank, why);
}

} // namespace zc::migrate
