module nightshift.bench/mock

go 1.22
