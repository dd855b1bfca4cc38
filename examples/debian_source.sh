# shellcheck shell=bash
# Sourced by the build scripts of examples that take their source from Debian.

# download PACKAGE VERSION FOLDER: unpack the distribution's source to FOLDER/source, by apt with lists of its own: the
# machine's sources stay as they are.
download() {
    local package=$1 version=$2 folder=$3 apt=$3/apt archive
    mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
    sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$apt/parts/source.sources"
    local options=(-qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts"
        -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update
    (cd "$folder" && apt-get "${options[@]}" source --download-only "$package" >/dev/null)
    archive=$(compgen -G "$folder/${package}_$version.*.orig.tar.xz") ||
        { echo "this distribution has no source of $package $version" >&2; return 1; }
    mkdir -p "$folder/source"
    tar -xJf "$archive" -C "$folder/source" --strip-components=1
}

# build_once PACKAGE VERSION BUILT STAMP SOURCE...: unless STAMP is that of the last time, download the source, put
# `$out_of_line` into the files below it that SOURCE means (patterns) and call `build`. BUILT, below `$cache`, is copied to
# `$here/build` then: moved there, since it may be running.
build_once() {
    local package=$1 version=$2 built=$3 stamp=$4 pattern name=${3##*/}
    shift 4
    mkdir -p "$here/build" "$cache"
    if [ "$(cat "$cache/stamp" 2>/dev/null)" != "$stamp" ]; then
        "$(readlink -f "$here/../../.ci/install")" "${packages[@]}"
        rm -rf "$cache/stamp" "$cache/source" "$cache/output"
        download "$package" "$version" "$cache"
        for pattern; do
            # shellcheck disable=SC2086  # a pattern
            sed -i "$out_of_line" "$cache"/source/$pattern
        done
        build
        echo "$stamp" >"$cache/stamp"
    fi
    if ! cmp -s "$cache/$built" "$here/build/$name"; then
        cp "$cache/$built" "$here/build/$name.new"
        mv "$here/build/$name.new" "$here/build/$name"
    fi
}
