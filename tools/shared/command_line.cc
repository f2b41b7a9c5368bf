// SPDX-License-Identifier: BSD-3-Clause
#include "tools/shared/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text/nearest.h"
#include "base/text/quantity.h"

namespace ulc::tools {
namespace {

/// Returns the command that was being parsed: the last one named.
const CLI::App& command_of(const CLI::App& app) {
    const auto parsed = app.get_subcommands();
    return parsed.empty() ? app : command_of(*parsed.front());
}

std::string name_of(const CLI::App& app) {
    const CLI::App* parent = app.get_parent();
    return parent == nullptr ? app.get_name() : name_of(*parent) + " " + app.get_name();
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& words) {
    const std::string meant = nearest_word(word, words);
    return meant.empty() ? "" : "; did you mean " + meant + "?";
}

std::string no_such_option(const CLI::App& app, const std::string& word) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
    const std::string name = word.substr(0, word.find('='));
    return "there is no option " + name + did_you_mean(name, names);
}

std::string no_such_command(const CLI::App& app, const std::string& word) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(command->get_name());
    std::string all;
    for (const std::string& name : names)
        all += (all.empty() ? "" : ", ") + name;
    if (word.empty()) return "say which command to run: " + all;
    const std::string meant = did_you_mean(word, names);
    return "there is no command " + word + (meant.empty() ? "; there are " + all : meant);
}

/// Returns the line that explains why a command line was not understood.
std::string explain(const CLI::App* root, const CLI::Error& error) {
    const CLI::App& command = command_of(*root);
    const std::vector<std::string> rest = root->remaining(true);
    const std::string word = rest.empty() ? "" : rest.front();
    const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const bool names_command = command.get_require_subcommand_min() > 0;
    std::string text = error.what();
    if (word.starts_with('-') && (names_command || is_extra)) {
        text = no_such_option(command, word);
    } else if (names_command) {
        text = no_such_command(command, word);
    } else if (is_extra) {
        text = "one word too many: " + word;
    }
    return name_of(command) + ": " + text + "\nSee: " + name_of(command) + " --help\n";
}

}  // namespace

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

const Option& Option::time(Nanos unit, Nanos low, Nanos high, bool or_none) const {
    const TimeBounds bounds{.unit = unit, .low = low, .high = high};
    const auto read = [bounds, or_none](std::string& text) {
        Nanos time = 0;
        std::string fault = or_none && text == "0" ? "" : read_time(text, bounds, time);
        if (fault.empty())
            text = std::to_string(static_cast<long double>(time) /
                                  static_cast<long double>(bounds.unit));
        return fault;
    };
    option_->transform(CLI::Validator(read, ""))->type_name("TIME");
    return *this;
}

const Option& Option::rate(std::uint64_t low, std::uint64_t high) const {
    const auto read = [low, high](std::string& text) {
        std::uint64_t bits = 0;
        std::string fault = read_rate(text, low, high, bits);
        if (fault.empty()) text = std::to_string(bits);
        return fault;
    };
    option_->transform(CLI::Validator(read, ""))->type_name("RATE");
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

std::string Command::no_such_option(const std::string& word) const {
    return tools::no_such_option(*app_, word);
}

void Command::drop_help() { app_->set_help_flag(); }

bool Command::is_parsed() const { return app_->parsed(); }

CommandLine::CommandLine(const std::string& description, const std::string& name)
    : Command(nullptr), root_(std::make_unique<CLI::App>(description, name)) {
    app_ = root_.get();
    app_->failure_message(explain);
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
