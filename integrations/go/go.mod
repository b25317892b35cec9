module crosswind/integrations/go

go 1.22
