// Figures on their way into JSON, and from there into the cells of tables.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cascade::report {

// Counts as they are, other figures to six digits: more would only make files longer. Not finite: null.
nlohmann::json number(double value);

// To the bit: what a later run goes on with. Not a number: null.
nlohmann::json kept(double value);

// Null where there is none.
nlohmann::json field(const nlohmann::json & object, const std::string & name);

// A figure, and where it has an interval half its width; "-" where it was not measured.
std::string cell(const nlohmann::json & object, const std::string & name, int digits, double factor = 1.0);
std::string percent(const nlohmann::json & object, const std::string & name);

// Empty where it was not measured.
std::string csv_number(const nlohmann::json & value);

} // namespace cascade::report
