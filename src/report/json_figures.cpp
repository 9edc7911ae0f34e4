#include "report/json_figures.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cascade::report {

using nlohmann::json;

json number(double value) {
    if (!std::isfinite(value)) {
        return nullptr;
    }
    if (value == std::floor(value)) {
        return value;
    }
    const double unit = std::pow(10.0, std::floor(std::log10(std::fabs(value))) - 5.0);
    return std::stod(fmt::format("{:.6g}", std::round(value / unit) * unit));
}

json kept(double value) { return std::isnan(value) ? json(nullptr) : json(value); }

json field(const json & object, const std::string & name) {
    return object.is_object() && object.contains(name) ? object.at(name) : json(nullptr);
}

std::string cell(const json & object, const std::string & name, int digits, double factor) {
    const json value = field(object, name);
    if (!value.is_number()) {
        return "-";
    }
    std::string text = fmt::format("{:.{}f}", factor * value.get<double>(), digits);
    const json interval = field(object, name + "_interval");
    if (interval.is_array()) {
        const double half = factor * (interval.at(1).get<double>() - interval.at(0).get<double>()) / 2.0;
        text += fmt::format(" ±{:.{}f}", half, digits);
    }
    return text;
}

std::string percent(const json & object, const std::string & name) {
    const std::string text = cell(object, name, 1, 100.0);
    return text == "-" ? text : text + " %";
}

std::string csv_number(const json & value) {
    return value.is_number_integer() ? fmt::format("{}", value.get<int64_t>())
           : value.is_number()       ? fmt::format("{:.9g}", value.get<double>())
                                     : "";
}

} // namespace cascade::report
