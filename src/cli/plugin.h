// Our own plugin, loaded into a program of ours that has made its bare contexts before: those made afterwards have it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cascade::cli {

// Where the plugin is: GGML_CASCADE_PLUGIN, else libggml-cascade.so beside the program. Also keeps the engine from
// loading it by itself, which would leave nothing bare. To be called before the engine starts; throws
// std::runtime_error with a message for a person.
std::string find_plugin();

// Loads it; nothing where that was done before. Throws std::runtime_error with a message for a person.
void load_plugin(const std::string & path);

// Has it write the statistics of all its contexts, now.
void write_plugin_summaries();

// An empty file that only we can read.
std::string new_temporary_file();

// What the plugin counted since it was loaded.
struct PluginFigures {
    std::map<std::string, double> seconds; // by part
    int64_t failures = 0;
};

PluginFigures operator-(const PluginFigures & after, const PluginFigures & before);

// Of the statistics' last summary; every part that is a time is taken, whatever its name.
PluginFigures read_figures(const std::string & statistics_file);

// The plugin in one mode, for the rest of the process. Outlives the contexts that have it.
class Plugin {
  public:
    Plugin(const std::string & path, const std::string & mode);
    ~Plugin();
    Plugin(const Plugin &) = delete;
    Plugin & operator=(const Plugin &) = delete;

    // Up to now; none in modes that leave the engine's graph as it is, since counting would be their only cost.
    PluginFigures figures() const;

  private:
    void remove_statistics() const;

    std::string statistics; // file; empty: none
};

} // namespace cascade::cli
