// SPDX-License-Identifier: BSD-3-Clause
#include "tools/shared/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <utility>

namespace ulc::tools {

const Option& Option::required() const {
    option_->required();
    return *this;
}

template <typename Number>
const Option& Option::range(Number low, Number high) const {
    option_->check(CLI::Range(low, high));
    return *this;
}
template const Option& Option::range(int, int) const;
template const Option& Option::range(unsigned, unsigned) const;
template const Option& Option::range(std::uint64_t, std::uint64_t) const;
template const Option& Option::range(double, double) const;

const Option& Option::one_of(std::vector<std::string> words) const {
    option_->check(CLI::IsMember(std::move(words)));
    return *this;
}

const Option& Option::check(std::function<std::string(const std::string&)> fault) const {
    option_->check(std::move(fault));
    return *this;
}

const Option& Option::group(const std::string& heading) const {
    option_->group(heading);
    return *this;
}

const Option& Option::excludes(const Option& other) const {
    option_->excludes(other.option_);
    return *this;
}

const Option& Option::needs(const Option& other) const {
    option_->needs(other.option_);
    return *this;
}

const Option& Option::allow_extra_args(bool allowed) const {
    option_->allow_extra_args(allowed);
    return *this;
}

const Option& Option::expected(int least, int most) const {
    option_->expected(least, most);
    return *this;
}

const Option& Option::type_name(const std::string& name) const {
    option_->type_name(name);
    return *this;
}

const Option& Option::trigger_on_parse() const {
    option_->trigger_on_parse();
    return *this;
}

const Option& Option::delimiter(char separator) const {
    option_->delimiter(separator);
    return *this;
}

const Option& Option::capture_default_str() const {
    option_->capture_default_str();
    return *this;
}

Command Command::add_subcommand(const std::string& name, const std::string& description) {
    return Command(app_->add_subcommand(name, description));
}

template <typename Value>
Option Command::add_option(const std::string& names, Value& value, const std::string& description) {
    return Option(app_->add_option(names, value, description));
}
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::uint16_t&, const std::string&);
template Option Command::add_option(const std::string&, unsigned&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::int64_t>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::uint16_t>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::vector<unsigned>&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::size_t>&,
                                    const std::string&);

Option Command::add_option_function(const std::string& names,
                                    const std::function<void(const std::string&)>& take,
                                    const std::string& description) {
    return Option(app_->add_option_function<std::string>(names, take, description));
}

Option Command::add_flag(const std::string& names, bool& value, const std::string& description) {
    return Option(app_->add_flag(names, value, description));
}

Option Command::get_option(const std::string& name) const { return Option(app_->get_option(name)); }

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::callback(std::function<void()> run) { app_->callback(std::move(run)); }

void Command::prefix_command() { app_->prefix_command(); }

std::vector<std::string> Command::remaining() const { return app_->remaining(); }

void Command::drop_help() { app_->set_help_flag(); }

bool Command::is_parsed() const { return app_->parsed(); }

CommandLine::CommandLine(const std::string& description, const std::string& name)
    : Command(nullptr), root_(std::make_unique<CLI::App>(description, name)) {
    app_ = root_.get();
}

CommandLine::~CommandLine() = default;

void CommandLine::set_version_flag(const std::string& version) {
    app_->set_version_flag("--version", version);
}

void CommandLine::require_subcommand() { app_->require_subcommand(1); }

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
    try {
        app_->parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app_->exit(error);
    }
    return std::nullopt;
}

std::optional<int> CommandLine::parse(std::vector<std::string> words) {
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
        app_->parse(std::move(words));
    } catch (const CLI::ParseError& error) {
        return app_->exit(error);
    }
    return std::nullopt;
}

}  // namespace ulc::tools
