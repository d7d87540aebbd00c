/* SPDX-License-Identifier: BSD-3-Clause */
#include "job_in_move.h"

#include "job.h"
#include "process.h"
#include "profiler.h"

namespace zc::migrate {

job_in_move::job_in_move(job &of, const control::request &wanted) : job_(of)
{
    hello_.moved = true;
    hello_.rank = of.now_.rank;
    hello_.safe_points = of.safe_points_.load();
    hello_.requests = of.agreement_.requests();
    hello_.job = of.name_;
    hello_.identity = of.identity_;
    hello_.line = of.line_;
    hello_.moves = of.moves_ + 1;
    hello_.age_s = seconds() - of.begun_;
    hello_.hosts = of.hosts_;
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
    return migrate::greatest(job_.now_.ours, std::move(values));
}

std::vector<double> job_in_move::total(std::vector<double> values)
{
    return migrate::total(job_.now_.ours, std::move(values));
}

std::unique_ptr<departure> job_in_move::start_successor()
{
    job_.join_writer();
    job_.data.check_mapped();
    return migrate::start_successor(job_.settings_, job_.command_, target_, hello_);
}

void job_in_move::link_up(departure *mine)
{
    growth how;
    how.old = &job_.now_;
    how.leavers = hello_.leavers;
    how.rank = job_.now_.rank;
    next_ = job_.link_up(how, mine);
}

const registry &job_in_move::data() const noexcept
{
    return job_.data;
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

void job_in_move::let_go()
{
    job_.lock_.reset(); /* of rank 0: its successor takes it when it saves */
}

void job_in_move::give_up_old_world()
{
    if (!target_.name.empty())
        profiler::instance().close();
    if (job_.release)
        job_.release(job_.now_.user, job_.argument);
    job_.agreement_.close();
    job_.now_.disconnect();
}

void job_in_move::enter_new_world()
{
    job_.now_ = next_;
    job_.moves_++;
    profiler::instance().link(job_.now_.user);
    job_.open_agreement(hello_.requests);
    job_.meeting_.settle();
}

std::vector<double> job_in_move::rebuild_world(double begin)
{
    return job_.rebuild_world(begin);
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
    MPI_Finalize();
    leave_process(leaving::moved);
}

void job_in_move::end_job(const std::string &why)
{
    migrate::end_job(job_.now_.rank, why);
}

} // namespace zc::migrate
